import { ActionIcon } from "@mantine/core";
import { IconAlertTriangle, IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { memo, useId, useState } from "react";
import { Link } from "react-router";
import type { ServerEvent } from "../../api/live";
import { Facts } from "../../components/Facts";
import { Time } from "../../components/Time";
import { isoTime } from "../../format/format";
import { text } from "../../text";
import classes from "./Events.module.css";
import { dataOf, type Kind } from "./list";

const words = text.events;
const ALARMING: ReadonlySet<Kind> = new Set<Kind>(["warning", "task.lost", "checkpoint.failed", "job.stalled"]);

/** One event: when, what kind, whose, and its sentence; what else it carries on demand. */
export const EventRow = memo(function EventRow({ event }: { event: ServerEvent }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <li className={classes.event} data-alarming={ALARMING.has(event.kind) || undefined}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={24}
        aria-label={words.details(event.message)}
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      >
        {open ? <IconChevronDown size={16} /> : <IconChevronRight size={16} />}
      </ActionIcon>
      <span className={classes.time}>
        <Time at={event.at} />
      </span>
      <span className={classes.kind}>
        {ALARMING.has(event.kind) && <IconAlertTriangle size={14} aria-hidden />}
        {words.kinds[event.kind] ?? event.kind}
      </span>
      <span className={`${classes.of} cut`}>
        {event.job_id != null && (
          <Link to={`/jobs/${encodeURIComponent(event.job_id)}`} className={classes.link}>
            {event.job_id}
          </Link>
        )}
      </span>
      <span className={`${classes.message} wrap`}>{event.message}</span>
      {open && (
        <div id={id} className={classes.data}>
          <Facts
            facts={[
              { label: words.number, value: event.seq },
              { label: words.at, value: isoTime(event.at) },
              ...(event.task_id == null ? [] : [{ label: words.task, value: event.task_id }]),
              ...dataOf(event).map(([label, value]) => ({
                label,
                value: <span className={classes.value}>{value}</span>,
              })),
            ]}
          />
        </div>
      )}
    </li>
  );
});
