import { State } from "../../components/State";
import { text } from "../../text";
import { SIGNS } from "./shown";

const words: Record<string, string> = text.endpoints.states;

/** The state of an endpoint, a version or a kernel. */
export function Status({ state }: { state: string }) {
  const shown = SIGNS[state];
  if (shown === undefined) return <State state={state} />;
  return <State state={shown.sign} tone={shown.tone} word={words[state] ?? state} />;
}
