import { State } from "../../components/State";
import { Time } from "../../components/Time";
import { count } from "../../format/format";
import { text } from "../../text";
import type { StateTone } from "../../theme/tokens";
import { Actions, IncludeButton } from "./Actions";
import { Cell } from "./Cell";
import { Hardware } from "./Hardware";
import { hardwareOf } from "./hardware";
import classes from "./Machines.module.css";
import { type ColourBy, type Exclusion, exclusionsOf, type Machine, numSlots } from "./map";

const words = text.machines;
const TONES: Record<Machine["state"], StateTone> = {
  "in use": "running",
  draining: "waiting",
  drained: "stopped",
  excluded: "failed",
  away: "failed",
};
const SIGNS: Record<Machine["state"], string> = {
  "in use": "running",
  draining: "stopping",
  drained: "paused",
  excluded: "failed",
  away: "failed",
};

/** A machine: what it is, how it is, who holds its slots, and what of it is out of use. */
export function MachineRow({ machine, by, removable }: { machine: Machine; by: ColourBy; removable: boolean }) {
  const labels = Object.entries(machine.labels).map(([name, value]) => `${name}=${value}`);
  const exclusions = exclusionsOf(machine);
  return (
    <section className={classes.machine} aria-label={machine.name}>
      <header className={classes.head}>
        <h2 className="cut" title={machine.name}>
          {machine.name}
        </h2>
        <State state={SIGNS[machine.state]} tone={TONES[machine.state]} word={words.states[machine.state]} />
        {machine.slots.length > 0 && (
          <>
            <span className="num">{words.slots(count(machine.num_taken), count(numSlots(machine)))}</span>
            <span className={`${classes.model} cut`} title={hardwareOf(machine)}>
              {hardwareOf(machine)}
            </span>
          </>
        )}
        {machine.files === "copied" && (
          <span className="dim" title={words.copiedTitle}>
            {words.copied}
          </span>
        )}
        {labels.map((label) => (
          <code key={label} className={`${classes.label} cut`} title={label}>
            {label}
          </code>
        ))}
        <Actions machine={machine} removable={removable} />
      </header>
      {(machine.drained_by !== null || exclusions.length > 0) && (
        <ul className={classes.out}>
          {machine.drained_by !== null && (
            <li>
              <span className="wrap">
                {words.drainedBy(machine.drained_by)}, <Time at={machine.drained_at} />
              </span>
            </li>
          )}
          {exclusions.map((exclusion) => (
            <Excluded key={`${exclusion.at} ${exclusion.slots.join()}`} machine={machine} exclusion={exclusion} />
          ))}
        </ul>
      )}
      {machine.facts !== null && <Hardware facts={machine.facts} />}
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

function Excluded({ machine, exclusion }: { machine: Machine; exclusion: Exclusion }) {
  const what = words.what(exclusion.slots);
  return (
    <li>
      <span className={classes.mark} aria-hidden />
      <div className="wrap">
        {words.excludedBy(what, exclusion.slots.length > 1, exclusion.by)}, <Time at={exclusion.at} />:{" "}
        <b>{exclusion.because}</b> <IncludeButton machine={machine} slots={exclusion.slots} />
      </div>
    </li>
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
