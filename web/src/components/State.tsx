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
import type { ReactNode } from "react";
import { text } from "../text";
import type { StateTone } from "../theme/tokens";
import classes from "./State.module.css";

const SIGN = { size: 14, "aria-hidden": true } as const;

/** How each state is shown: a tone and a sign; the word is that of the server's lifecycle. */
const SHOWN: Record<string, { tone: StateTone; sign: ReactNode }> = {
  pending: { tone: "waiting", sign: <IconClock {...SIGN} /> },
  starting: { tone: "starting", sign: <IconLoader {...SIGN} /> },
  running: { tone: "running", sign: <IconPlayerPlay {...SIGN} /> },
  paused: { tone: "paused", sign: <IconPlayerPause {...SIGN} /> },
  stopping: { tone: "waiting", sign: <IconPlayerStop {...SIGN} /> },
  completed: { tone: "completed", sign: <IconCircleCheck {...SIGN} /> },
  failed: { tone: "failed", sign: <IconCircleX {...SIGN} /> },
  stopped: { tone: "stopped", sign: <IconPlayerStop {...SIGN} /> },
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
  const shown = SHOWN[state] ?? { tone: tone ?? "stopped", sign: <IconAlertTriangle {...SIGN} /> };
  return (
    <span className={classes.state} data-tone={tone ?? shown.tone}>
      {shown.sign}
      <span>{word ?? text.states[state] ?? state}</span>
    </span>
  );
}
