import {
  IconAlertTriangle,
  IconCircleCheck,
  IconCircleX,
  IconClock,
  IconLoader,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerStop,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import { text } from "../text";
import type { StateTone } from "../theme/tokens";
import classes from "./State.module.css";

/** How each state is shown: a tone and a sign; the word is that of the server's lifecycle. */
const SHOWN: Record<string, { tone: StateTone; icon: ComponentType<{ size: number; "aria-hidden": boolean }> }> = {
  pending: { tone: "waiting", icon: IconClock },
  starting: { tone: "starting", icon: IconLoader },
  running: { tone: "running", icon: IconPlayerPlay },
  paused: { tone: "paused", icon: IconPlayerPause },
  stopping: { tone: "waiting", icon: IconPlayerStop },
  completed: { tone: "completed", icon: IconCircleCheck },
  failed: { tone: "failed", icon: IconCircleX },
  stopped: { tone: "stopped", icon: IconPlayerStop },
};

interface Props {
  state: string;
  /** Another word than the state's own, for nouns that are not jobs. */
  word?: string;
  /** Another tone, likewise. */
  tone?: StateTone;
}

/** A state: sign, word and colour, always all three. */
export function State({ state, word, tone }: Props) {
  const shown = SHOWN[state] ?? { tone: tone ?? "stopped", icon: IconAlertTriangle };
  const Icon = shown.icon;
  return (
    <span className={classes.state} data-tone={tone ?? shown.tone}>
      <Icon size={14} aria-hidden />
      <span>{word ?? text.states[state] ?? state}</span>
    </span>
  );
}
