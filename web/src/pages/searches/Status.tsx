import { State } from "../../components/State";
import { text } from "../../text";
import { SIGNS } from "./shown";

const words: Record<string, string> = text.searches.states;

/** The state of a search or a trial. */
export function Status({ state }: { state: string }) {
  const shown = SIGNS[state];
  const word = words[state] ?? state;
  return shown === undefined ? (
    <State state={state} word={word} />
  ) : (
    <State state={shown.sign} tone={shown.tone} word={word} />
  );
}
