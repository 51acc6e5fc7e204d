import { SegmentedControl, Select } from "@mantine/core";
import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { useAddress } from "../../components/useAddress";
import { count, percent } from "../../format/format";
import { text } from "../../text";
import { FrontChart } from "./FrontChart";
import { HistoryChart } from "./HistoryChart";
import { ParallelCoordinates } from "./ParallelCoordinates";
import { bestPart } from "./parallel";
import classes from "./Searches.module.css";
import { historyOf, type SearchView, type TrialRow } from "./shown";
import { MOST, useBestTrials } from "./trials";
import { viewOf } from "./view";

const words = text.searches.plots;

/** Values side by side, how important each is, and what the trials came to. */
export function Plots({ search }: { search: SearchView }) {
  const address = useAddress();
  const trials = useBestTrials(search);
  const share = address.get("best") ?? "all";
  const part = Number(share) || null;
  const objective = search.settings.objectives[0];
  const aside = (
    <SegmentedControl
      aria-label={words.show}
      value={share}
      onChange={(value) => address.set({ best: value === "all" ? null : value })}
      data={Object.entries(words.shares).map(([value, label]) => ({ value, label }))}
    />
  );
  return (
    <Answer query={trials} rows={2} height={200}>
      {(all) => {
        const shown = bestPart(all, part);
        const history = historyOf(all, objective?.direction === "maximize");
        const numbers = history.values.filter((value): value is number => value !== null);
        return (
          <>
            <Panel title={words.parallel} aside={aside}>
              {shown.length === 0 ? (
                <span className="dim">{words.few}</span>
              ) : (
                <ParallelCoordinates search={search} trials={shown} />
              )}
              {all.length >= MOST && <div className="dim">{words.cut(count(MOST))}</div>}
            </Panel>
            <div className={classes.two}>
              <Importances search={search} />
              <Panel title={words.history}>
                <HistoryChart history={history} log={viewOf(numbers).log} metric={objective?.metric ?? ""} />
              </Panel>
              {search.settings.objectives.length > 1 && <Front search={search} trials={all} />}
            </div>
          </>
        );
      }}
    </Answer>
  );
}

/** Two of the objectives against each other; of more than two one chooses which. */
function Front({ search, trials }: { search: SearchView; trials: readonly TrialRow[] }) {
  const address = useAddress();
  const metrics = search.settings.objectives.map(({ metric }) => metric);
  const indexOf = (name: string, usual: number) => {
    const found = metrics.indexOf(address.get(name) ?? "");
    return found < 0 ? usual : found;
  };
  const across = indexOf("across", 0);
  const up = indexOf("up", 1);
  const choice = (name: string, label: string, index: number) => (
    <Select
      size="xs"
      label={label}
      allowDeselect={false}
      data={metrics}
      value={metrics[index] ?? null}
      onChange={(metric) => address.set({ [name]: metric })}
    />
  );
  return (
    <Panel title={words.front}>
      {metrics.length > 2 && (
        <div className={classes.pair} style={{ marginBottom: 12 }}>
          {choice("across", words.across, across)}
          {choice("up", words.up, up)}
        </div>
      )}
      <FrontChart search={search} trials={trials} of={[across, up]} />
    </Panel>
  );
}

function Importances({ search }: { search: SearchView }) {
  const completed = search.trials.completed ?? 0;
  const importances = useGet(
    "/v1/searches/{name}/importances",
    { params: { path: { name: search.name } } },
    // a fit over all trials: dear, so every change of a search asks for it no more often than this
    { refetchInterval: search.state === "running" ? 15_000 : false, enabled: completed > 0, retry: false },
  );
  return (
    <Panel title={words.importances}>
      {completed === 0 ? (
        <span className="dim">{words.few}</span>
      ) : (
        <Answer query={importances}>
          {(found) => {
            const bars = Object.entries(found.importances).sort(([, a], [, b]) => b - a);
            if (bars.length === 0) return <span className="dim wrap">{found.reason}</span>;
            const most = Math.max(...bars.map(([, value]) => value), 1e-9);
            return (
              <>
                <ul className={classes.bars}>
                  {bars.map(([name, value]) => (
                    <li key={name}>
                      <span className="cut" title={name}>
                        {name}
                      </span>
                      <span className={classes.bar} aria-hidden>
                        <div style={{ width: `${(100 * value) / most}%` }} />
                      </span>
                      <span className="num">{percent(value)}</span>
                    </li>
                  ))}
                </ul>
                <p className="dim" style={{ margin: "12px 0 0" }}>
                  {words.importancesHint}
                </p>
              </>
            );
          }}
        </Answer>
      )}
    </Panel>
  );
}
