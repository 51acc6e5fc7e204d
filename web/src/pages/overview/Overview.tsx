import { Anchor } from "@mantine/core";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { count, counted, measure } from "../../format/format";
import { SlotsPanel } from "../../slots/SlotsPanel";
import { text } from "../../text";
import classes from "./Overview.module.css";

const words = text.overview;

type Facts = Schemas["Overview"];

/** Who has which slots, and why: the chart, who waits for what, the machines, and what happened last. */
export default function Overview() {
  const overview = useGet("/v1/overview", {});
  return (
    <Page title={text.nav.overview} bare>
      <Answer query={overview} rows={1} height={52}>
        {(facts) => <Headline facts={facts} />}
      </Answer>
      <SlotsPanel />
      <Answer query={overview} rows={3}>
        {(facts) =>
          isUntouched(facts) ? (
            <Empty title={words.first.title} hint={words.first.hint} command={words.first.command} />
          ) : (
            <div className={classes.columns}>
              <Waits facts={facts} />
              <Machines facts={facts} />
              <Newest facts={facts} />
            </div>
          )
        }
      </Answer>
    </Page>
  );
}

function isUntouched(facts: Facts): boolean {
  return Object.keys(facts.jobs).length === 0 && facts.searches.length === 0 && !facts.endpoints?.num_endpoints;
}

function Headline({ facts }: { facts: Facts }) {
  const running = (facts.jobs.running ?? 0) + (facts.jobs.starting ?? 0) + (facts.jobs.stopping ?? 0);
  const [search] = facts.searches;
  const rate = facts.endpoints?.requests_per_s;
  return (
    <dl className={classes.headline}>
      <Figure
        value={`${count(facts.num_used)} / ${count(facts.num_slots)}`}
        what={words.slots}
        more={outOfUse(facts)}
        big
      />
      <Figure value={count(running)} what={words.running(running)} to="/jobs?state=running" />
      <Figure value={count(facts.num_waiting)} what={words.waiting(facts.num_waiting)} to="/jobs?state=waiting" />
      {facts.endpoints !== null && facts.endpoints !== undefined && facts.endpoints.num_endpoints > 0 && (
        <Figure
          value={count(facts.endpoints.num_serving)}
          what={words.endpoints(facts.endpoints.num_serving)}
          more={rate == null ? undefined : words.requests(measure(rate))}
          to="/endpoints"
        />
      )}
      {search !== undefined && (
        <Figure
          value={count(facts.searches.length)}
          what={words.searches(facts.searches.length)}
          more={words.trials(count(search.num_ended), count(search.max_trials))}
          to="/searches"
        />
      )}
      {facts.samples_per_s > 0 && <Figure value={measure(facts.samples_per_s)} what={words.samples} />}
    </dl>
  );
}

function outOfUse({ num_drained, num_excluded }: { num_drained: number; num_excluded: number }): string | undefined {
  const parts = [
    num_drained > 0 && words.drained(count(num_drained)),
    num_excluded > 0 && words.excluded(count(num_excluded)),
  ];
  return parts.filter(Boolean).join(", ") || undefined;
}

interface FigureProps {
  value: string;
  what: string;
  more?: string | undefined;
  to?: string;
  big?: boolean;
}

function Figure({ value, what, more, to, big = false }: FigureProps) {
  return (
    <div className={classes.figure} data-big={big}>
      <dt>{to === undefined ? what : <Link to={to}>{what}</Link>}</dt>
      <dd>{value}</dd>
      {more !== undefined && <dd className={classes.more}>{more}</dd>}
    </div>
  );
}

function Waits({ facts }: { facts: Facts }) {
  return (
    <Panel
      title={words.waits}
      aside={<More to="/jobs?state=waiting" what={words.allWaiting} show={facts.num_waiting > 0} />}
    >
      {facts.waiting.length === 0 ? (
        <p className={classes.none}>{words.nobodyWaits}</p>
      ) : (
        <ul className={classes.list}>
          {facts.waiting.map((job) => (
            <li key={job.id}>
              <div className={classes.line}>
                <Link to={`/jobs/${job.id}`} className="cut" title={job.name}>
                  {job.id} {job.name}
                </Link>
                {job.waiting != null && (
                  <span className="dim">
                    {words.needs(counted(job.waiting.num_needed, "slot"))} ·{" "}
                    {words.place(job.waiting.place, job.waiting.num_waiting)}
                  </span>
                )}
              </div>
              <div className="wrap dim">{job.sentence}</div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Machines({ facts }: { facts: Facts }) {
  return (
    <Panel title={words.machines} aside={<More to="/machines" what={text.nav.machines} show />}>
      <ul className={classes.list}>
        {facts.machines.map((machine) => (
          <li key={machine.node_id}>
            <div className={classes.line}>
              <span className="cut">{machine.node_id}</span>
              <span className="dim">
                {outOfUse({ num_drained: machine.drained ? machine.num_slots : 0, num_excluded: machine.num_excluded })}
              </span>
              <span className="num">
                {count(machine.num_used)} / {count(machine.num_slots)}
              </span>
            </div>
            <div className={classes.bar} aria-hidden>
              <div style={{ width: `${(100 * machine.num_used) / Math.max(1, machine.num_slots)}%` }} />
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Newest({ facts }: { facts: Facts }) {
  return (
    <Panel title={words.newest} aside={<More to="/events" what={words.allEvents} show />}>
      {facts.events.length === 0 ? (
        <p className={classes.none}>{words.quiet}</p>
      ) : (
        <ol className={classes.events}>
          {facts.events
            .slice(-12)
            .reverse()
            .map((event) => (
              <li key={event.seq}>
                <span className="dim num">
                  <Time at={event.at} />
                </span>
                <span className="wrap">
                  <Told message={event.message} job={event.job_id ?? null} />
                </span>
              </li>
            ))}
        </ol>
      )}
    </Panel>
  );
}

/** A sentence, whose job is a link: where the sentence names it, else before it. */
function Told({ message, job }: { message: string; job: string | null }) {
  if (job === null) return message;
  const link = <Link to={`/jobs/${job}`}>{job}</Link>;
  const rest = message.startsWith(`${job} `) ? message.slice(job.length) : ` ${message}`;
  return (
    <>
      {link}
      {rest}
    </>
  );
}

function More({ to, what, show }: { to: string; what: string; show: boolean }) {
  if (!show) return null;
  return (
    <Anchor component={Link} to={to} size="sm">
      {what}
    </Anchor>
  );
}
