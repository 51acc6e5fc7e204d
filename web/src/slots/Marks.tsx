import { Popover, UnstyledButton } from "@mantine/core";
import {
  IconAdjustmentsHorizontal,
  IconArrowBarToRight,
  IconArrowDown,
  IconArrowUp,
  IconPlayerPlay,
  IconServer2,
  IconStack2,
  IconX,
} from "@tabler/icons-react";
import { type ComponentType, type Ref, useId, useImperativeHandle, useRef, useState } from "react";
import { Link } from "react-router";
import { Swatch } from "../components/Swatch";
import { NONE, time } from "../format/format";
import { text } from "../text";
import { type Cluster, clustersOf, type SlotMark } from "./marks";
import classes from "./Slots.module.css";

const words = text.slots.marks;
const APART = 26;
const MOST = 12;

const SIGNS: Record<SlotMark["kind"], ComponentType<{ size: number; "aria-hidden": boolean }>> = {
  came: IconPlayerPlay,
  went: IconArrowBarToRight,
  grew: IconArrowUp,
  shrank: IconArrowDown,
  failed: IconX,
  changed: IconAdjustmentsHorizontal,
  queue: IconStack2,
  server: IconServer2,
};

interface Props {
  marks: readonly SlotMark[];
  box: { left: number; width: number; from: number; until: number };
}

/**
 * The strip under the plot: what happened when. A press shows the sentence of the decision.
 *
 * All marks share one popover: each has listeners and an overlay of its own, and marks come and go all the time.
 */
export function Marks({ marks, box }: Props) {
  const id = useId();
  const [pressed, setPressed] = useState<number | null>(null);
  const [target, setTarget] = useState<HTMLElement | null>(null);
  const positionOf = (at: number) => ((at - box.from) / (box.until - box.from)) * box.width;
  const clusters = clustersOf(marks, positionOf, box.width, APART);
  const open = clusters.find((cluster) => cluster.marks.some(({ seq }) => seq === pressed));
  const shown = useRef(open); // until it has faded
  shown.current = open ?? shown.current;
  return (
    <>
      <ul className={classes.marks} aria-label={words.label}>
        {clusters.map((cluster) => (
          <li key={cluster.marks[0]?.seq} style={{ left: box.left + cluster.left }}>
            <MarkButton
              cluster={cluster}
              opens={cluster === open ? id : null}
              onPress={(seq) => setPressed(cluster === open ? null : seq)}
              ref={cluster === open ? setTarget : null}
            />
          </li>
        ))}
      </ul>
      <Popover
        id={id}
        opened={open !== undefined}
        onChange={() => setPressed(null)}
        position="top"
        withArrow
        shadow="md"
        width={360}
      >
        <Popover.Target>
          <Stand for={target} />
        </Popover.Target>
        <Popover.Dropdown>
          <ol className={classes.sentences}>
            {shown.current?.marks.slice(-MOST).map((mark) => (
              <li key={mark.seq}>
                <MarkSentence mark={mark} />
              </li>
            ))}
          </ol>
        </Popover.Dropdown>
      </Popover>
    </>
  );
}

/** What a popover takes for its target: it tells of an element that is elsewhere. */
function Stand({ for: element, ref }: { for: HTMLElement | null; ref?: Ref<HTMLElement | null> }) {
  useImperativeHandle<HTMLElement | null, HTMLElement | null>(ref, () => element, [element]);
  return null;
}

interface MarkButtonProps {
  cluster: Cluster;
  /** The popover that it has opened, by its id. */
  opens: string | null;
  onPress: (seq: number) => void;
  ref: Ref<HTMLButtonElement>;
}

function MarkButton({ cluster, opens, onPress, ref }: MarkButtonProps) {
  const [first] = cluster.marks;
  if (first === undefined) return null;
  const several = cluster.marks.length > 1;
  const Sign = SIGNS[first.kind];
  const label = several ? words.several(cluster.marks.length) : `${first.job_id ?? first.name} ${words[first.kind]}`;
  return (
    <UnstyledButton
      ref={ref}
      id={opens ?? undefined}
      className={classes.mark}
      data-kind={several ? "several" : first.kind}
      aria-label={`${time(first.at)}: ${label}`}
      aria-haspopup="dialog"
      aria-expanded={opens !== null}
      aria-controls={opens === null ? undefined : `${opens}-dropdown`}
      onClick={() => onPress(first.seq)}
    >
      {several ? cluster.marks.length : <Sign size={14} aria-hidden />}
    </UnstyledButton>
  );
}

/** What a mark stands for: who, from how many slots to how many, and the sentence. */
export function MarkSentence({ mark }: { mark: SlotMark }) {
  return (
    <>
      <div className={classes.sentenceHead}>
        <Swatch colour={mark.colour ?? null} size={10} />
        {mark.job_id ? (
          <Link to={`/jobs/${mark.job_id}`}>
            {mark.job_id} {mark.name}
          </Link>
        ) : (
          <span>{mark.name || words[mark.kind]}</span>
        )}
        <span className="dim">{slotsOf(mark)}</span>
        <time className="dim">{time(mark.at)}</time>
      </div>
      <div className="wrap">
        {mark.message}
        {mark.who !== "" && ` · ${words.by(mark.who)}`}
      </div>
    </>
  );
}

/** `4 → 5`, as far as it is known. */
export function slotsOf(mark: SlotMark): string {
  if (mark.from_slots == null && mark.to_slots == null) return words[mark.kind];
  return `${mark.from_slots ?? NONE} → ${mark.to_slots ?? NONE}`;
}
