import { useMemo, useRef } from "react";
import uPlot from "uplot";
import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { axis, Plot, type PlotOptions, timeAxis } from "../../components/Plot";
import { text } from "../../text";
import type { Tokens } from "../../theme/tokens";
import classes from "./Searches.module.css";
import type { SearchView } from "./shown";
import { stacked } from "./stack";

const words = text.searches.overview;
/** Its edge is the present, of which no event tells. */
const REFRESH_MS = 3_000;
const TOP = 50;

/** The slots of a search over time, a layer for each trial: they go on from those that were pruned to those that are left. */
export function SlotsByTrial({ search }: { search: SearchView }) {
  const running = search.state === "running";
  const chart = useGet(
    "/v1/slots/chart",
    {
      params: {
        query: {
          by: "trial",
          search: search.name,
          from: search.created_at,
          until: running ? 0 : (search.ended_at ?? 0) + 1,
          top: TOP,
          max_buckets: 1000,
        },
      },
    },
    { refetchInterval: running ? REFRESH_MS : false, keepPrevious: true },
  );
  const stepped = useRef(uPlot.paths.stepped?.({ align: 1, extend: true }));
  const found = chart.data;
  const data = useMemo(() => {
    if (found === undefined) return [[]] as uPlot.AlignedData;
    const end = (row: readonly number[]) => [...row, row.at(-1) ?? 0];
    return [[...found.times, found.until], ...stacked(found.values.map(end))] as uPlot.AlignedData;
  }, [found]);
  const num = found?.keys.length ?? 0;
  const options = (tokens: Tokens): PlotOptions => ({
    scales: { x: { time: true }, y: { range: (_, __, high) => [0, Math.max(1, high)] } },
    axes: [
      timeAxis(tokens, { grid: { show: false } }),
      axis(tokens, { size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 1000] }),
    ],
    series: [
      {},
      ...Array.from({ length: num }, (_, index) => ({
        stroke: tokens.surface,
        width: 1,
        fill: shadeOf(tokens, num - 1 - index),
        points: { show: false },
        ...(stepped.current && { paths: stepped.current }),
      })),
    ],
    cursor: { y: false, drag: { x: false, y: false } },
  });
  return (
    <Panel title={words.slots}>
      <Answer query={chart} height={220} rows={1}>
        {(shown) =>
          shown.keys.length === 0 ? (
            <span className="dim">{words.noSlots}</span>
          ) : (
            <figure style={{ margin: 0 }} aria-label={words.slots}>
              <Plot data={data} options={options} shape={String(num)} height={220} />
              <ul className={classes.legend}>
                {shown.keys.slice(0, 14).map((key, index) => (
                  <li key={key.id}>
                    <span
                      style={{
                        width: 10,
                        height: 10,
                        borderRadius: 3,
                        background: `var(--work-${index % 8})`,
                        opacity: 1 - 0.25 * (Math.floor(index / 8) % 3),
                      }}
                      aria-hidden
                    />
                    <span className="cut" style={{ maxWidth: 160 }} title={key.name}>
                      {key.name.slice(key.name.lastIndexOf("#"))}
                    </span>
                  </li>
                ))}
                {shown.keys.length > 14 && <li className="dim">+{shown.keys.length - 14}</li>}
              </ul>
              {shown.rest.num_keys > 0 && <div className="dim">{words.slotsHint(shown.rest.num_keys)}</div>}
            </figure>
          )
        }
      </Answer>
    </Panel>
  );
}

/** The colour of a trial by its order: eight hues, in three shades. */
function shadeOf(tokens: Tokens, index: number): string {
  const hue = tokens.work[index % 8] ?? tokens.accent;
  const opacity = 1 - 0.25 * (Math.floor(index / 8) % 3);
  return mixed(hue, tokens.surface, opacity);
}

function mixed(front: string, back: string, share: number): string {
  const parts = [1, 3, 5].map((at) => {
    const [one, other] = [front, back].map((colour) => Number.parseInt(colour.slice(at, at + 2), 16));
    return Math.round((one ?? 0) * share + (other ?? 0) * (1 - share));
  });
  return `rgb(${parts.join(" ")})`;
}
