import { Swatch } from "../components/Swatch";
import { count, duration, measure, time } from "../format/format";
import { text } from "../text";
import { indexAt, type Layer, type SlotChart } from "./layers";
import classes from "./Slots.module.css";

const words = text.slots;

interface Props {
  chart: SlotChart;
  layers: readonly Layer[];
  at: number;
  /** Pixels from the left of the chart, and the chart's width. */
  left: number;
  width: number;
  pinned: boolean;
}

/** Who had how many slots at an instant, in the order of the layers, the highest first. */
export function Tooltip({ chart, layers, at, left, width, pinned }: Props) {
  const index = indexAt(chart.times, at);
  const rows = [...layers].reverse().filter((layer) => (layer.values[index] ?? 0) > 0);
  const used = rows.reduce((sum, layer) => sum + (layer.values[index] ?? 0), 0);
  const isGap = chart.gaps.some((gap) => gap.from <= at && at < gap.until);
  const side = left > width / 2 ? { right: `calc(100% - ${left - 12}px)` } : { left: left + 12 };
  return (
    <div className={classes.tooltip} style={side} data-pinned={pinned} aria-hidden={!pinned}>
      <div className={classes.tooltipTime}>
        {time(at)}
        {isGap && <span> · {words.noRecord}</span>}
        {!chart.exact && <span className="dim"> · {words.mean(duration(chart.width_s))}</span>}
      </div>
      <table>
        <tbody>
          {rows.map((layer) => (
            <tr key={layer.key}>
              <td>
                <Swatch colour={layer.colour} size={10} />
              </td>
              <td className={classes.tooltipName}>{layer.kind === "job" ? `${layer.id} ${layer.name}` : layer.name}</td>
              <td className="num">{measure(layer.values[index])}</td>
            </tr>
          ))}
          <tr className={classes.tooltipTotal}>
            <td />
            <td>{words.total}</td>
            <td className="num">
              {measure(used)} / {count(chart.capacity[index])}
            </td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}
