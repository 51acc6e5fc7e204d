import type { Schemas } from "../../api/client";
import { State } from "../../components/State";
import { text } from "../../text";
import type { StateTone } from "../../theme/tokens";

export type Environment = Schemas["EnvironmentView"];

const words = text.environments;
const SHOWN: Record<string, { state: string; tone: StateTone }> = {
  building: { state: "starting", tone: "starting" },
  ready: { state: "completed", tone: "completed" },
  failed: { state: "failed", tone: "failed" },
};

export function EnvironmentState({ environment }: { environment: Environment }) {
  const shown = SHOWN[environment.state];
  return (
    <State
      state={shown?.state ?? environment.state}
      tone={shown?.tone}
      word={words.states[environment.state] ?? environment.state}
    />
  );
}
