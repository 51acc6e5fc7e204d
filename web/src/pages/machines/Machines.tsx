import { SegmentedControl } from "@mantine/core";
import { Link } from "react-router";
import { useGet } from "../../api/queries";
import { Figures } from "../../components/Facts";
import { Answer, Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Swatch } from "../../components/Swatch";
import { useAddress } from "../../components/useAddress";
import { count, measure } from "../../format/format";
import { text } from "../../text";
import { JoinButton, JoinTokens } from "./Joining";
import { MachineRow } from "./MachineRow";
import classes from "./Machines.module.css";
import { type ColourBy, type Machine, numSlots, whoIsThere } from "./map";

const words = text.machines;
const TOLD_MS = 10_000;

/** Who sits where: every slot of every machine, how the machine is, and what of it is out of use. */
export default function Machines() {
  const query = useGet("/v1/machines", {}, { refetchInterval: TOLD_MS });
  const address = useAddress();
  const by: ColourBy = address.get("colour") === "queue" ? "queue" : "job";
  return (
    <Page
      title={text.nav.machines}
      actions={
        <div className={classes.by}>
          {query.data?.takes_machines && <JoinButton />}
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
            <Shown machines={page.machines} by={by} removable={page.takes_machines} />
          )
        }
      </Answer>
      {query.data?.takes_machines && <JoinTokens />}
    </Page>
  );
}

interface ShownProps {
  machines: readonly Machine[];
  by: ColourBy;
  /** Those that have joined can be removed. */
  removable: boolean;
}

function Shown({ machines, by, removable }: ShownProps) {
  const excluded = machines.reduce((sum, machine) => sum + machine.num_excluded, 0);
  const slots = machines.reduce((sum, machine) => sum + numSlots(machine), 0);
  const used = machines.reduce((sum, machine) => sum + machine.num_taken, 0);
  const drained = machines.filter((machine) => machine.drained_by !== null).length;
  return (
    <>
      <Figures
        figures={[
          { label: words.used, value: words.ofSlots(count(used), count(slots)) },
          { label: words.count, value: count(machines.length) },
          { label: words.drained, value: count(drained) },
          { label: words.excluded, value: count(excluded) },
        ]}
      />
      <Legend machines={machines} by={by} />
      {machines.map((machine) => (
        <MachineRow key={machine.name} machine={machine} by={by} removable={removable} />
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
          <b className="num">{words.numSlots(measure(entry.slots))}</b>
        </li>
      ))}
      {others > 0 && (
        <li>
          <Swatch colour={null} />
          <span>{words.others}</span>
          <b className="num">{words.numSlots(count(others))}</b>
        </li>
      )}
    </ul>
  );
}
