import { percent } from "../format/format";
import classes from "./Progress.module.css";

interface Props {
  /** 0 to 1. */
  fraction: number;
  label: string;
  /** As high as a line of a table, or as what one looks at first. */
  tall?: boolean;
  /** It has ended there: what still goes on draws the eye, this does not. */
  over?: boolean;
}

/** How far something is: a bar and its number. */
export function ProgressBar({ fraction, label, tall = false, over = false }: Props) {
  const share = Math.min(1, Math.max(0, fraction));
  return (
    <span className={classes.progress} data-tall={tall || undefined} data-over={over || undefined}>
      <span
        className={classes.bar}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.floor(share * 100)}
        style={{ backgroundSize: `${share * 100}% 100%` }}
      />
      <span className={classes.number}>{percent(Math.floor(share * 100) / 100)}</span>
    </span>
  );
}
