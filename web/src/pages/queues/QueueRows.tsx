import { Badge } from "@mantine/core";
import { Link } from "react-router";
import { text } from "../../text";
import type { QueueView } from "./bar";
import { QueueBar, sayJobs } from "./QueueBar";
import classes from "./queues.module.css";

const words = text.queues;

/** Queues below each other: name and rules, how each stands, its jobs. */
export function QueueRows({ queues, current }: { queues: readonly QueueView[]; current?: string }) {
  return (
    <ul className={classes.queues}>
      {queues.map((queue) => (
        <li key={queue.queue.name} className={classes.queue} data-current={queue.queue.name === current || undefined}>
          <div className={classes.who}>
            <Link
              to={`/queues/${encodeURIComponent(queue.queue.name)}`}
              className={`${classes.name} cut`}
              title={queue.queue.name}
              aria-current={queue.queue.name === current || undefined}
            >
              {queue.queue.name}
            </Link>
            <Rules queue={queue} />
          </div>
          <QueueBar queue={queue} />
          <Link to={`/jobs?queue=${encodeURIComponent(queue.queue.name)}`} className={classes.jobs}>
            {sayJobs(queue)}
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** How its jobs share, and with what weight. */
export function Rules({ queue: { queue } }: { queue: QueueView }) {
  return (
    <span className={classes.rules}>
      <span>{words.weight(String(queue.weight))}</span>
      <span>{words.policies[queue.policy] ?? queue.policy}</span>
      {!queue.preemption && <Tag>{words.noPreemption}</Tag>}
      {!queue.open && <Tag>{words.closed}</Tag>}
    </span>
  );
}

function Tag({ children }: { children: string }) {
  return (
    <Badge variant="default" size="sm" tt="none" fw={500}>
      {children}
    </Badge>
  );
}
