import { Link } from "react-router";
import { text } from "../../text";
import { hueOf, patternOf } from "../../theme/tokens";
import classes from "./Machines.module.css";
import { type ColourBy, colourOf, type Holder, type Machine, type MachineSlot, seatOf } from "./map";

const words = text.machines;

interface Props {
  machine: Machine;
  slot: MachineSlot;
  by: ColourBy;
}

/** One slot: its number, the colours of who holds it, and their names. Who shares it has a part of its width each. */
export function Cell({ machine, slot, by }: Props) {
  const seat = seatOf(machine, slot);
  return (
    <li className={classes.cell} data-seat={seat}>
      <div className={classes.fill} aria-hidden>
        {seat === "held" && slot.holders.map((holder) => <Fill key={holder.job_id} colour={colourOf(holder, by)} />)}
      </div>
      <div className={classes.holders}>
        {slot.holders.map((holder) => (
          <Who key={holder.job_id} holder={holder} by={by} />
        ))}
        {seat === "others" && words.others}
        {seat === "free" && words.free}
        {seat === "closed" && words.closed}
      </div>
      <span className={classes.number}>
        <span className="unseen">{words.slot(slot.slot)}</span>
        <span aria-hidden>{slot.slot}</span>
      </span>
    </li>
  );
}

function Fill({ colour }: { colour: number }) {
  return <div data-pattern={patternOf(colour)} style={{ backgroundColor: `var(--work-${hueOf(colour)})` }} />;
}

function Who({ holder, by }: { holder: Holder; by: ColourBy }) {
  return (
    <Link
      to={`/jobs/${encodeURIComponent(holder.job_id)}`}
      className="cut"
      title={`${holder.job_id} ${holder.job_name} · ${holder.queue}`}
    >
      {by === "job" ? holder.job_id : holder.queue}
    </Link>
  );
}
