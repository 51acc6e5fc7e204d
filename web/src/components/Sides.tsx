import type { ReactNode } from "react";
import classes from "./Sides.module.css";

/** What something is at the left, what it has at the right; below each other where there is no room. */
export function Sides({ left, right }: { left: ReactNode; right: ReactNode }) {
  return (
    <div className={classes.sides}>
      <div className={classes.side}>{left}</div>
      <div className={classes.side}>{right}</div>
    </div>
  );
}
