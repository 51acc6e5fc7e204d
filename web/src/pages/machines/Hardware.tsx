import type { ReactNode } from "react";
import { Age } from "../../components/Time";
import { bytes, measure, percent } from "../../format/format";
import { text } from "../../text";
import classes from "./Hardware.module.css";
import { busyOf, gpuMemoryOf, hottestOf, isSilent, type MachineFacts, type Part, partOf } from "./hardware";

const words = text.machines;

/** How a machine is just now: load, memory, its GPUs, since when it is up, and how old all that is. */
export function Hardware({ facts }: { facts: MachineFacts }) {
  const memory = partOf(facts.memory_used_bytes, facts.memory_bytes);
  const gpuMemory = gpuMemoryOf(facts);
  const busy = busyOf(facts);
  const hottest = hottestOf(facts);
  const load = facts.load === null ? null : partOf(facts.load, facts.num_cpus);
  return (
    <>
      <dl className={classes.facts} aria-label={words.facts}>
        {load !== null && (
          <Fact label={words.load} part={load} full>
            {words.loadOf(measure(Number(load.used.toFixed(1))), words.cpus(load.total))}
          </Fact>
        )}
        {memory !== null && (
          <Fact label={words.memory} part={memory}>
            {words.ofSlots(bytes(memory.used), bytes(memory.total))}
          </Fact>
        )}
        {gpuMemory !== null && (
          <Fact label={words.gpuMemory} part={gpuMemory}>
            {words.ofSlots(bytes(gpuMemory.used), bytes(gpuMemory.total))}
          </Fact>
        )}
        {busy !== null && (
          <Fact label={words.busy} part={{ used: busy, total: 1 }}>
            {percent(busy)}
          </Fact>
        )}
        {hottest !== null && (
          <Fact label={words.hottest}>
            {words.hottestSlot(words.degrees(hottest.celsius.toFixed(0)), hottest.slot)}
          </Fact>
        )}
        <Fact label={words.up}>
          <Age since={facts.booted_at} />
        </Fact>
      </dl>
      <p className={classes.age} data-silent={isSilent(facts) || undefined}>
        {facts.cpu_model !== "" && <span className="wrap">{facts.cpu_model} · </span>}
        {isSilent(facts) ? words.silent : words.told} <Age since={facts.measured_at} /> {words.ago}
      </p>
      {facts.trouble !== "" && (
        <p className={`${classes.age} wrap`} data-silent>
          {facts.trouble}
        </p>
      )}
    </>
  );
}

interface FactProps {
  label: string;
  /** Drawn as a bar below. */
  part?: Part;
  /** What is over the whole is worth a look. */
  full?: boolean;
  children: ReactNode;
}

function Fact({ label, part, full = false, children }: FactProps) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
      {part && <Bar part={part} warns={full && part.used > part.total} />}
    </div>
  );
}

/** A part of a whole as a bar; what it says stands beside it. */
export function Bar({ part, warns = false }: { part: Part; warns?: boolean }) {
  return (
    <dd className={classes.bar} data-warns={warns || undefined} aria-hidden>
      <span style={{ width: `${Math.min(1, part.used / part.total) * 100}%` }} />
    </dd>
  );
}
