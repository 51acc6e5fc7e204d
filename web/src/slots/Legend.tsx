import { UnstyledButton } from "@mantine/core";
import { Link } from "react-router";
import { Swatch } from "../components/Swatch";
import { count, measure, NONE } from "../format/format";
import { text } from "../text";
import type { Layer, SlotChart } from "./layers";
import { indexAt } from "./layers";
import classes from "./Slots.module.css";

const words = text.slots;

interface Props {
  chart: SlotChart;
  layers: readonly Layer[];
  hidden: ReadonlySet<string>;
  onHidden: (hidden: ReadonlySet<string>) => void;
  /** The instant whose values are shown. */
  at: number;
}

/** Whose layer is which, with what they have. A press on a sign shows that one alone; with Ctrl it hides it. */
export function Legend({ chart, layers, hidden, onHidden, at }: Props) {
  const index = indexAt(chart.times, at);
  const used = layers.reduce((sum, layer) => sum + (layer.values[index] ?? 0), 0);
  const capacity = chart.capacity[index];
  const press = (layer: Layer, single: boolean) => {
    if (single) {
      const next = new Set(hidden);
      if (!next.delete(layer.key)) next.add(layer.key);
      onHidden(next);
      return;
    }
    const others = layers.filter((other) => other.key !== layer.key).map((other) => other.key);
    const isAlone = !hidden.has(layer.key) && others.every((key) => hidden.has(key));
    onHidden(new Set(isAlone ? [] : others));
  };
  return (
    <ul className={classes.legend}>
      {[...layers].reverse().map((layer) => (
        <li key={layer.key} data-hidden={hidden.has(layer.key)} data-none={!layer.values[index] || undefined}>
          <UnstyledButton
            className={classes.legendSign}
            aria-label={words.isolate(layer.name)}
            aria-pressed={!hidden.has(layer.key) && hidden.size > 0}
            onClick={(event) => press(layer, event.ctrlKey || event.metaKey)}
          >
            <Swatch colour={layer.colour} size={14} />
          </UnstyledButton>
          <LayerName layer={layer} />
          <b className="num">{measure(layer.values[index] ?? 0)}</b>
        </li>
      ))}
      <li>
        <span className={classes.legendSign}>
          <span className={classes.freeSign} aria-hidden />
        </span>
        <span>{words.free}</span>
        <b className="num">{capacity === undefined ? NONE : count(Math.max(0, Math.round(capacity - used)))}</b>
      </li>
    </ul>
  );
}

function LayerName({ layer }: { layer: Layer }) {
  const label = layer.kind === "job" && layer.name !== layer.id ? `${layer.id} ${layer.name}` : layer.name;
  const to = placeOf(layer);
  if (to === null) return <span className="cut">{label}</span>;
  return (
    <Link to={to} className="cut" title={label}>
      {label}
    </Link>
  );
}

function placeOf(layer: Layer): string | null {
  const name = encodeURIComponent(layer.id);
  const places = {
    job: `/jobs/${name}`,
    endpoint: `/endpoints/${name}`,
    search: `/searches/${name}`,
    queue: `/queues/${name}`,
    group: `/queues/groups/${name}`,
    user: `/jobs?owner=${name}`,
    rest: null,
    others: null,
  };
  return places[layer.kind];
}
