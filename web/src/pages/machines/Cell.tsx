import { ActionIcon } from "@mantine/core";
import { IconBan } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "react-router";
import { useMay } from "../../app/session";
import { bytes, percent } from "../../format/format";
import { text } from "../../text";
import { hueOf, patternOf } from "../../theme/tokens";
import { ExcludeDialog } from "./ExcludeDialog";
import { Bar } from "./Hardware";
import { type Device, deviceOf, partOf } from "./hardware";
import classes from "./Machines.module.css";
import { type ColourBy, colourOf, type Holder, type Machine, type MachineSlot, seatOf } from "./map";

const words = text.machines;

interface Props {
  machine: Machine;
  slot: MachineSlot;
  by: ColourBy;
}

/** One slot: its number, the colours of who holds it, their names, and its GPU. Who shares it has a part of its width each. */
export function Cell({ machine, slot, by }: Props) {
  const seat = seatOf(machine, slot);
  const device = deviceOf(machine, slot.slot);
  const leaves = slot.excluded !== null && slot.taken;
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
        {seat === "excluded" && words.excludedSlot}
        {leaves && <span className={classes.leaves}>{words.excludedSlot}</span>}
      </div>
      {device !== null && <Gpu device={device} />}
      <div className={classes.foot}>
        {slot.excluded === null && <ExcludeButton machine={machine} slot={slot.slot} />}
        <span className={classes.number}>{words.slot(slot.slot)}</span>
      </div>
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

/** The GPU of a slot: how full its memory is, how busy and how hot it is. */
function Gpu({ device }: { device: Device }) {
  const memory = partOf(device.memory_used_bytes, device.memory_bytes);
  const full = memory && words.ofSlots(bytes(memory.used), bytes(memory.total));
  return (
    <div className={classes.gpu} title={full === null ? device.model : `${device.model}, ${full}`}>
      {memory !== null && (
        <>
          <div className="cut">
            <span className="unseen">{words.gpuMemory} </span>
            {bytes(memory.used)}
          </div>
          <Bar part={memory} />
        </>
      )}
      <div className={classes.says}>
        {device.utilisation != null && <span>{words.busyOf(percent(device.utilisation))}</span>}
        {device.temperature_c != null && <span>{words.degrees(device.temperature_c.toFixed(0))}</span>}
      </div>
    </div>
  );
}

function ExcludeButton({ machine, slot }: { machine: Machine; slot: number }) {
  const mayWrite = useMay("pool:write");
  const [asks, setAsks] = useState(false);
  if (!mayWrite) return null;
  const label = words.excludeSlot(slot, machine.name);
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={24}
        className={classes.exclude}
        aria-label={label}
        title={label}
        onClick={() => setAsks(true)}
      >
        <IconBan size={14} />
      </ActionIcon>
      {asks && <ExcludeDialog machine={machine} slot={slot} onClose={() => setAsks(false)} />}
    </>
  );
}
