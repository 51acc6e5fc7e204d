import { text } from "../text";
import classes from "./Frame.module.css";

/** The frame without anything in it: what is seen before the server has said who one is. */
export function FirstPaint() {
  return (
    <div className={classes.first} aria-busy="true">
      <div className={classes.firstRail}>
        <span className={classes.product}>{text.product}</span>
      </div>
    </div>
  );
}
