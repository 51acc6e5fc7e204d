import { counted } from "../../format/format";
import { text } from "../../text";
import { partsOf, type QueueView } from "./bar";
import classes from "./queues.module.css";

const words = text.queues;

/** What a queue uses, deserves, borrows and lends, as a bar over the slots of its group and in words below. */
export function QueueBar({ queue }: { queue: QueueView }) {
  const parts = partsOf(queue);
  return (
    <div className={classes.standing}>
      <div className={classes.bar} aria-hidden>
        {parts.own > 0 && <div className={classes.own} style={{ width: share(parts.own) }} />}
        {parts.borrowed > 0 && <div className={classes.borrowed} style={{ width: share(parts.borrowed) }} />}
        {parts.lent > 0 && <div className={classes.lent} style={{ width: share(parts.lent) }} />}
        {parts.deserved !== null && <div className={classes.mark} style={{ left: share(parts.deserved) }} />}
      </div>
      <div className={classes.words}>{sayStanding(queue)}</div>
    </div>
  );
}

function share(part: number): string {
  return `${part * 100}%`;
}

function sayStanding(queue: QueueView): string {
  const said = [words.used(counted(queue.num_held, "slot")), words.deserves(String(queue.num_deserved))];
  if (queue.num_borrowed > 0) said.push(words.borrowed(String(queue.num_borrowed)));
  if (queue.num_lent > 0) said.push(words.lent(String(queue.num_lent)));
  return said.join(" · ");
}

/** How many of its jobs run and wait. */
export function sayJobs(queue: QueueView): string {
  const said = [];
  if (queue.num_running > 0) said.push(words.runs(String(queue.num_running)));
  if (queue.num_waiting > 0) said.push(words.waits(String(queue.num_waiting)));
  return said.length > 0 ? said.join(" · ") : words.idle;
}

/** What the parts of a bar mean. */
export function Legend() {
  return (
    <ul className={classes.legend} aria-label={words.legend}>
      <li>
        <span className={`${classes.key} ${classes.own}`} aria-hidden />
        {words.own}
      </li>
      <li>
        <span className={`${classes.key} ${classes.borrowed}`} aria-hidden />
        {words.borrowedKey}
      </li>
      <li>
        <span className={`${classes.key} ${classes.lent}`} aria-hidden />
        {words.lentKey}
      </li>
      <li>
        <span className={classes.markKey} aria-hidden />
        {words.mark}
      </li>
    </ul>
  );
}
