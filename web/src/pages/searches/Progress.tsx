import { count } from "../../format/format";
import { text } from "../../text";
import classes from "./Searches.module.css";
import { type SearchView, trialCounts } from "./shown";

/** How many trials have ended, of how many. */
export function Progress({ search }: { search: SearchView }) {
  const { ended, all } = trialCounts(search);
  return (
    <span className={classes.progress}>
      <span className={classes.track} aria-hidden>
        <div style={{ width: `${all > 0 ? Math.min(100, (100 * ended) / all) : 0}%` }} />
      </span>
      <span className="num">{text.searches.figures.trialsOf(count(ended), count(all))}</span>
    </span>
  );
}
