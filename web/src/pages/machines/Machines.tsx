import { Button, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Figures } from "../../components/Facts";
import { Answer, Empty, Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { State } from "../../components/State";
import { Swatch } from "../../components/Swatch";
import { Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { Words } from "../../components/Words";
import { count, measure } from "../../format/format";
import { text } from "../../text";
import type { StateTone } from "../../theme/tokens";
import { Cell } from "./Cell";
import classes from "./Machines.module.css";
import { type ColourBy, type Machine, whoIsThere } from "./map";

const words = text.machines;
const TONES: Record<Machine["state"], StateTone> = { "in use": "running", draining: "waiting", drained: "stopped" };
const SIGNS: Record<Machine["state"], string> = { "in use": "running", draining: "stopping", drained: "paused" };

/** Who sits where: every slot of every machine, and whether the machine takes work. */
export default function Machines() {
  const query = useGet("/v1/machines", {});
  const address = useAddress();
  const by: ColourBy = address.get("colour") === "queue" ? "queue" : "job";
  return (
    <Page
      title={text.nav.machines}
      actions={
        <div className={classes.by}>
          <span className="dim">{words.colourBy}</span>
          <SegmentedControl
            aria-label={words.colourBy}
            data={Object.entries(words.by).map(([value, label]) => ({ value, label }))}
            value={by}
            onChange={(value) => address.set({ colour: value === "job" ? null : value })}
          />
        </div>
      }
    >
      <Answer query={query} rows={3} height={120}>
        {(page) =>
          page.machines.length === 0 ? (
            <Empty title={words.empty.title} hint={words.empty.hint} command={words.empty.command} />
          ) : (
            <Shown machines={page.machines} by={by} />
          )
        }
      </Answer>
    </Page>
  );
}

function Shown({ machines, by }: { machines: readonly Machine[]; by: ColourBy }) {
  const slots = machines.reduce((sum, machine) => sum + machine.slots.length, 0);
  const used = machines.reduce((sum, machine) => sum + machine.num_taken, 0);
  const drained = machines.filter((machine) => machine.state !== "in use").length;
  return (
    <>
      <Figures
        figures={[
          { label: words.used, value: words.ofSlots(count(used), count(slots)) },
          { label: words.count, value: count(machines.length) },
          { label: words.drained, value: count(drained) },
        ]}
      />
      <Legend machines={machines} by={by} />
      {machines.map((machine) => (
        <MachineRow key={machine.name} machine={machine} by={by} />
      ))}
    </>
  );
}

function Legend({ machines, by }: { machines: readonly Machine[]; by: ColourBy }) {
  const { entries, others } = whoIsThere(machines, by);
  if (entries.length === 0 && others === 0) return null;
  return (
    <ul className={classes.legend} aria-label={words.legend}>
      {entries.map((entry) => (
        <li key={entry.key}>
          <Swatch colour={entry.colour} />
          <Link
            to={by === "job" ? `/jobs/${encodeURIComponent(entry.key)}` : `/queues/${encodeURIComponent(entry.key)}`}
            className="cut"
            title={entry.name}
          >
            {entry.key !== entry.name && <span className="dim">{entry.key} </span>}
            {entry.name}
          </Link>
          <b className="num">{measure(entry.slots)}</b>
        </li>
      ))}
      {others > 0 && (
        <li>
          <Swatch colour={null} />
          <span>{words.others}</span>
          <b className="num">{count(others)}</b>
        </li>
      )}
    </ul>
  );
}

function MachineRow({ machine, by }: { machine: Machine; by: ColourBy }) {
  const labels = Object.entries(machine.labels).map(([name, value]) => `${name}=${value}`);
  const has = [];
  if (machine.num_gpus > 0) has.push(words.gpus(count(machine.num_gpus)));
  if (machine.num_cpus > 0) has.push(words.cpus(count(machine.num_cpus)));
  return (
    <section className={classes.machine} aria-label={machine.name}>
      <header className={classes.head}>
        <h2 className="cut" title={machine.name}>
          {machine.name}
        </h2>
        <State state={SIGNS[machine.state]} tone={TONES[machine.state]} word={words.states[machine.state]} />
        <span className="num">{words.slots(count(machine.num_taken), count(machine.slots.length))}</span>
        <span className="dim">{has.join(" · ")}</span>
        {labels.map((label) => (
          <code key={label} className={`${classes.label} cut`} title={label}>
            {label}
          </code>
        ))}
        {machine.drained_by !== null && (
          <span className="dim">
            {words.drainedBy(machine.drained_by)}, <Time at={machine.drained_at} />
          </span>
        )}
        <Actions machine={machine} />
      </header>
      {machine.slots.length === 0 ? (
        <p className="dim">{words.away}</p>
      ) : (
        <ol className={classes.map}>
          {machine.slots.map((slot) => (
            <Cell key={slot.slot} machine={machine} slot={slot} by={by} />
          ))}
        </ol>
      )}
      <Walls machine={machine} />
    </section>
  );
}

function Actions({ machine }: { machine: Machine }) {
  const mayWrite = useMay("pool:write");
  const canChange = useCanChange();
  const [asks, setAsks] = useState(false);
  const change = useChange("patch", "/v1/machines/{name}", { onSuccess: () => setAsks(false) });
  const set = (drained: boolean) => change.mutate({ params: { path: { name: machine.name } }, body: { drained } });
  if (!mayWrite) return null;
  return (
    <div className={classes.actions}>
      {machine.state === "in use" ? (
        <Button variant="default" onClick={() => setAsks(true)}>
          {words.drain}
        </Button>
      ) : (
        <Button loading={change.isPending} disabled={!canChange} onClick={() => set(false)}>
          {words.return}
        </Button>
      )}
      {change.error !== null && !asks && <Problem error={change.error} />}
      <Confirm
        opened={asks}
        onClose={() => setAsks(false)}
        title={words.drainTitle(machine.name)}
        action={words.drainVerb}
        pending={change.isPending}
        error={change.error}
        onConfirm={() => set(true)}
      >
        <Words of={words.drainHint} />
      </Confirm>
    </div>
  );
}

function Walls({ machine }: { machine: Machine }) {
  if (machine.walls.length === 0 && machine.missing_walls.length === 0) return null;
  return (
    <details className={classes.walls}>
      <summary>
        {words.walls}
        {machine.missing_walls.length > 0 && (
          <State state="failed" tone="waiting" word={words.missing(machine.missing_walls.length)} />
        )}
      </summary>
      <ul>
        {machine.walls.map((wall) => (
          <li key={wall} className="wrap">
            {wall}
          </li>
        ))}
        {machine.missing_walls.map((wall) => (
          <li key={wall} className="wrap">
            <b>{words.missingMark}:</b> {wall}
          </li>
        ))}
      </ul>
    </details>
  );
}
