import { State } from "../../components/State";
import { text } from "../../text";

const words = text.models.training;

/** The state of a training: that of its job, or that it has none (any more). */
export function TrainingState({ state }: { state: string }) {
  if (state === "removed") return <State state="stopped" word={words.removed} />;
  if (state === "submitting") return <State state="pending" word={words.submitting} />;
  return <State state={state} />;
}
