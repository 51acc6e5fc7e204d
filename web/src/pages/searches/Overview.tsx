import { Button, Switch } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { useGet } from "../../api/queries";
import { type Fact, Facts } from "../../components/Facts";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { counted, measure } from "../../format/format";
import { text } from "../../text";
import { HistoryChart } from "./HistoryChart";
import classes from "./Searches.module.css";
import { SlotsByTrial } from "./SlotsByTrial";
import { historyOf, limitTexts, objectiveText, type SearchView, spaceText, valueText } from "./shown";
import { useBestTrials } from "./trials";
import { viewOf } from "./view";

const words = text.searches.overview;
const NUM_DECISIONS = 50;

/** The best so far, the slots that went where it gets better, and why. */
export function Overview({ search }: { search: SearchView }) {
  return (
    <>
      <div className={classes.two}>
        <Best search={search} />
        <SlotsByTrial search={search} />
      </div>
      <div className={classes.two}>
        <div className={classes.stackOf}>
          <Why search={search} />
          <Values search={search} />
          <About search={search} />
        </div>
        <Decisions search={search} />
      </div>
    </>
  );
}

function Best({ search }: { search: SearchView }) {
  const address = useAddress();
  const trials = useBestTrials(search);
  const objective = search.settings.objectives[0];
  const history = historyOf(trials.data ?? [], objective?.direction === "maximize");
  const numbers = history.values.filter((value): value is number => value !== null);
  const mayLog = numbers.length > 0 && numbers.every((value) => value > 0);
  const set = address.get("log");
  const log = mayLog && (set === null ? viewOf(numbers).log : set === "yes");
  const aside = mayLog && (
    <Switch
      size="xs"
      label={words.log}
      checked={log}
      onChange={(event) => address.set({ log: event.currentTarget.checked ? "yes" : "no" })}
    />
  );
  return (
    <Panel title={words.history} aside={aside}>
      <HistoryChart history={history} log={log} metric={objective?.metric ?? ""} />
    </Panel>
  );
}

function Why({ search }: { search: SearchView }) {
  const why = useGet("/v1/searches/{name}/why", { params: { path: { name: search.name } } });
  return (
    <Panel title={words.why} aside={why.data && <span className="dim">{counted(why.data.num_slots, "slot")}</span>}>
      <Answer query={why}>
        {(found) => (
          <ul className={classes.list}>
            {found.remark && <li className="wrap">{found.remark}</li>}
            {found.sentences.map((sentence) => (
              <li key={sentence} className="wrap">
                {sentence}
              </li>
            ))}
            {found.trials.slice(0, 12).map((trial) => (
              <li key={trial.number} className="wrap">
                <Link to={`/jobs/${trial.job_id}`}>{text.searches.figures.by(trial.number)}</Link>{" "}
                <span className="dim">{trial.sentence}</span>
              </li>
            ))}
          </ul>
        )}
      </Answer>
    </Panel>
  );
}

function Decisions({ search }: { search: SearchView }) {
  const [num, setNum] = useState(NUM_DECISIONS);
  const after = Math.max(0, search.position - num);
  const decisions = useGet(
    "/v1/searches/{name}/decisions",
    { params: { path: { name: search.name }, query: { after, limit: Math.min(1000, num) } } },
    { keepPrevious: true },
  );
  return (
    <Panel title={words.decisions}>
      <Answer query={decisions}>
        {({ decisions: found }) =>
          found.length === 0 ? (
            <span className="dim">{words.noDecisions}</span>
          ) : (
            <section className={classes.decisions} tabIndex={0} aria-label={words.decisions}>
              <ol className={classes.list} reversed start={search.position}>
                {[...found].reverse().map((one) => (
                  <li key={one.position}>
                    <span className="dim num" style={{ textAlign: "left" }}>
                      <Time at={one.at} />
                    </span>
                    <span>{one.trial === null ? one.kind : text.searches.figures.by(one.trial)}</span>
                    <span className="wrap">{one.reason}</span>
                  </li>
                ))}
              </ol>
              {after > 0 && num < 1000 && (
                <Button
                  mt="sm"
                  variant="default"
                  size="compact-sm"
                  onClick={() => setNum((before) => Math.min(1000, before * 4))}
                >
                  {words.earlier}
                </Button>
              )}
            </section>
          )
        }
      </Answer>
    </Panel>
  );
}

function About({ search }: { search: SearchView }) {
  const { settings } = search;
  const { sampler, halving, pruner, population } = settings;
  const shared = settings.shared_with.includes("*") ? words.everybody : settings.shared_with.join(", ") || words.nobody;
  const facts: Fact[] = [
    { label: words.objective, value: objectiveText(search) },
    ...(settings.constraints.length > 0
      ? [{ label: words.constraints, value: settings.constraints.map(boundText).join(", ") }]
      : []),
    { label: words.sampler, value: `${sampler?.name ?? "tpe"}, ${words.seed(sampler?.seed ?? 0)}` },
    ...(halving
      ? [{ label: words.halving, value: `${halving.resource} ${halving.min}..${halving.max}:${halving.factor}` }]
      : []),
    ...(pruner ? [{ label: words.pruner, value: pruner.name }] : []),
    ...(population ? [{ label: words.population, value: JSON.stringify(population) }] : []),
    { label: words.limits, value: limitTexts(settings).join(", ") || words.noLimits },
    { label: words.shared, value: shared },
    ...(search.why_at_once
      ? [{ label: words.atOnce, value: `${search.num_at_once ?? ""}: ${search.why_at_once}` }]
      : []),
    ...(settings.description ? [{ label: text.searches.limits.description, value: settings.description }] : []),
  ];
  return (
    <Panel title={words.about}>
      <Facts facts={facts} />
    </Panel>
  );
}

function boundText(bound: SearchView["settings"]["constraints"][number]): string {
  const lower = bound.lower == null ? "" : `${measure(bound.lower)} ≤ `;
  const upper = bound.upper == null ? "" : ` ≤ ${measure(bound.upper)}`;
  return `${lower}${bound.metric}${upper}`;
}

function Values({ search }: { search: SearchView }) {
  const names = Object.entries(search.settings.parameters);
  return (
    <Panel title={search.best ? words.bestTitle : text.searches.create.parameters}>
      <section className={classes.scroll} tabIndex={0} aria-label={text.searches.create.parameters}>
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">{words.parameter}</th>
              {search.best && (
                <th scope="col" className="num">
                  {text.searches.figures.best}
                </th>
              )}
              <th scope="col">{words.from}</th>
            </tr>
          </thead>
          <tbody>
            {names.map(([name, parameter]) => (
              <tr key={name}>
                <td className="wrap">{name}</td>
                {search.best && (
                  <td className="num">
                    <b>{valueText(search.best.values[name])}</b>
                  </td>
                )}
                <td className="dim wrap">{spaceText(parameter)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </Panel>
  );
}
