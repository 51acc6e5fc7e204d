import { hueOf, patternOf } from "../theme/tokens";
import classes from "./Swatch.module.css";

interface Props {
  /** The number that the server gave the workload; null for what is nobody's to see. */
  colour: number | null;
  size?: number;
}

/** The colour of a workload, with its pattern: the same in charts, legends, tables and maps. */
export function Swatch({ colour, size = 12 }: Props) {
  return (
    <span
      className={classes.swatch}
      data-pattern={colour === null ? "plain" : patternOf(colour)}
      style={{
        width: size,
        height: size,
        backgroundColor: colour === null ? "var(--others)" : `var(--work-${hueOf(colour)})`,
      }}
      aria-hidden
    />
  );
}
