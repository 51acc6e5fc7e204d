import { useElementSize } from "@mantine/hooks";
import { measure } from "../../format/format";
import { text } from "../../text";
import { frontOf, type Point } from "./front";
import classes from "./Searches.module.css";
import type { SearchView, TrialRow } from "./shown";
import { viewOf } from "./view";

const words = text.searches.plots;
const HEIGHT = 260;
const LEFT = 64;
const BOTTOM = 36;
const PAD = 20;

interface Props {
  search: SearchView;
  trials: readonly TrialRow[];
  /** Which two of the objectives, counted from 0. */
  of: readonly [number, number];
}

/** Trials by two objectives; those that no other one beats in both are filled. */
export function FrontChart({ search, trials, of: [across, up] }: Props) {
  const { ref, width } = useElementSize<HTMLDivElement>();
  const { objectives } = search.settings;
  const [first, second] = [objectives[across], objectives[up]];
  const points = trials.flatMap((trial): Point[] => {
    const [x, y] = [trial.results?.[across], trial.results?.[up]];
    const counts = trial.state === "completed" && (trial.violation ?? 0) <= 0;
    return counts && x != null && y != null ? [{ number: trial.number, x, y }] : [];
  });
  const front = frontOf(points, [first?.direction === "maximize", second?.direction === "maximize"]);
  const x = scaleOf(
    points.map((point) => point.x),
    LEFT,
    Math.max(LEFT + 40, width - PAD),
  );
  const y = scaleOf(
    points.map((point) => point.y),
    HEIGHT - BOTTOM,
    PAD,
  );
  if (points.length === 0) return <span className="dim">{words.few}</span>;
  return (
    <>
      <div ref={ref} className={classes.stage} style={{ height: HEIGHT }}>
        <svg role="img" aria-label={`${words.front}: ${[...front].length} / ${points.length}`}>
          <line className={classes.axis} x1={LEFT} x2={width - PAD} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
          <line className={classes.axis} x1={LEFT} x2={LEFT} y1={PAD} y2={HEIGHT - BOTTOM} />
          {x.ends.map((value, index) => (
            <text
              key={`x${value}`}
              className={classes.tick}
              x={x.place(value)}
              y={HEIGHT - BOTTOM + 16}
              textAnchor={index === 0 ? "start" : "end"}
            >
              {measure(value)}
            </text>
          ))}
          {y.ends.map((value, index) => (
            <text
              key={`y${value}`}
              className={classes.tick}
              x={LEFT - 6}
              y={y.place(value) + (index === 0 ? 0 : 10)}
              textAnchor="end"
            >
              {measure(value)}
            </text>
          ))}
          <text x={(LEFT + width) / 2} y={HEIGHT - 4} textAnchor="middle">
            {first?.metric}
          </text>
          <text x={LEFT} y={PAD - 8}>
            {second?.metric}
          </text>
          {points.map((point) => {
            const isBest = front.has(point.number);
            return (
              <circle
                key={point.number}
                cx={x.place(point.x)}
                cy={y.place(point.y)}
                r={isBest ? 5 : 4}
                fill={isBest ? "var(--work-0)" : "none"}
                stroke={isBest ? "var(--work-0)" : "var(--control)"}
              >
                <title>{`${text.searches.figures.by(point.number)}: ${measure(point.x)}, ${measure(point.y)}`}</title>
              </circle>
            );
          })}
        </svg>
      </div>
      <div className="dim">{words.frontHint}</div>
    </>
  );
}

function scaleOf(values: readonly number[], from: number, to: number) {
  const { low, high, log } = viewOf(values);
  const place = (value: number) => {
    const inside = Math.min(high, Math.max(low, value));
    const share = log ? Math.log(inside / low) / Math.log(high / low) : (inside - low) / (high - low);
    return from + share * (to - from);
  };
  return { place, ends: [low, high] };
}
