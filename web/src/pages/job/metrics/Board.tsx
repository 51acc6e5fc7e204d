import { Button, SegmentedControl, Slider, Switch, TextInput } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { call, type Schemas } from "../../../api/client";
import { Empty, Loading, Problem } from "../../../components/Notice";
import { useAddress } from "../../../components/useAddress";
import { count } from "../../../format/format";
import { text } from "../../../text";
import { isOver } from "../facts";
import { type Axis, jobsOf, zoomOf } from "./curves";
import { MetricChart, type Shown } from "./MetricChart";
import classes from "./Metrics.module.css";

const words = text.job.metrics;
const AXES: readonly Axis[] = ["step", "time", "epoch"];
const FIRST = 12;
/** Metrics are no events: there are too many. */
const NAMES_MS = 5000;

interface Props {
  /** The job, and those that are compared with it. */
  ids: readonly string[];
  /** The only series that is shown. */
  only?: string | null;
  /** Whether others can be laid over it here. */
  canOverlay: boolean;
}

/** The metrics of a job, and of others over it, chart by chart. */
export function Board({ ids, only = null, canOverlay }: Props) {
  const address = useAddress();
  const jobs = useJobs(ids);
  const names = useNames(ids, jobs);
  const [all, setAll] = useState(false);
  const canEpoch = jobs.shown.length > 0 && jobs.shown.every((shown) => stepsPerEpoch(shown.job) !== null);
  const asked = AXES.find((axis) => axis === address.get("x")) ?? "step";
  const axis = asked === "epoch" && !canEpoch ? "step" : asked;
  const weight = Math.min(0.99, Math.max(0, Number(address.get("smooth") ?? 0) || 0));
  const sought = (address.get("find") ?? "").toLowerCase();
  const fitting = names.found.filter((name) => (only === null ? name.toLowerCase().includes(sought) : name === only));
  const shown = all ? fitting : fitting.slice(0, FIRST);
  const zoom = zoomOf(address.get("zoom"));
  const error = jobs.error ?? names.error;
  return (
    <>
      <div className={classes.tools}>
        <div>
          <div className={classes.label}>{words.x}</div>
          <SegmentedControl
            aria-label={words.x}
            data={AXES.filter((one) => one !== "epoch" || canEpoch).map((one) => ({
              value: one,
              label: words.axes[one],
            }))}
            value={axis}
            onChange={(value) => address.set({ x: value === "step" ? null : value })}
          />
        </div>
        <Smoothing weight={weight} />
        <Switch
          label={words.log}
          checked={address.get("log") === "yes"}
          onChange={(event) => address.set({ log: event.currentTarget.checked ? "yes" : null })}
        />
        {names.found.length > 4 && only === null && <Field name="find" label={words.find} type="search" />}
        {canOverlay && <Field name="with" label={words.overlay} placeholder={words.overlayHint} type="text" />}
        {zoom === null ? (
          <span className={classes.hint}>{words.zoomHint}</span>
        ) : (
          <span>
            {words.zoomed(count(zoom[0]), count(zoom[1]))}{" "}
            <Button variant="default" onClick={() => address.set({ zoom: null })}>
              {words.reset}
            </Button>
          </span>
        )}
      </div>
      {error !== null && <Problem error={error} />}
      {names.isLoading && <Loading rows={2} height={220} />}
      {!names.isLoading && error === null && fitting.length === 0 && (
        <Empty title={words.none} hint={words.noneHint} command={words.command} />
      )}
      <div className={classes.grid}>
        {shown.map((name) => (
          <MetricChart
            key={name}
            name={name}
            jobs={jobs.shown}
            axis={axis}
            weight={weight}
            log={address.get("log") === "yes"}
            zoom={zoom}
            onZoom={(steps) => address.set({ zoom: steps === null ? null : steps.join("-") })}
          />
        ))}
      </div>
      {fitting.length > shown.length && (
        <Button variant="default" onClick={() => setAll(true)}>
          {words.more(fitting.length - shown.length)}
        </Button>
      )}
    </>
  );
}

/** Steps of an epoch of a training; null: it has told none. */
export function stepsPerEpoch(job: Schemas["Job"]): number | null {
  const progress = job.progress;
  return progress == null || progress.num_epochs < 1 || progress.num_steps < 1
    ? null
    : progress.num_steps / progress.num_epochs;
}

function useJobs(ids: readonly string[]) {
  const answers = useQueries({
    queries: ids.map((id) => ({
      queryKey: ["get", "/v1/jobs/{job_id}", { params: { path: { job_id: id } } }],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call("get", "/v1/jobs/{job_id}", { params: { path: { job_id: id } } }, signal),
    })),
  });
  const found = answers.map((answer) => answer.data?.job);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the answers themselves are new at every render
  const shown = useMemo(
    () => found.filter((job) => job !== undefined).map((job): Shown => ({ job, perEpoch: stepsPerEpoch(job) })),
    [...found, ids.length],
  );
  return { shown, error: answers.find((answer) => answer.error !== null)?.error ?? null };
}

function useNames(ids: readonly string[], jobs: { shown: readonly Shown[] }) {
  const runs = jobs.shown.some((shown) => !isOver(shown.job));
  const answers = useQueries({
    queries: ids.map((id) => ({
      queryKey: ["get", "/v1/jobs/{job_id}/series", { params: { path: { job_id: id } } }],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call("get", "/v1/jobs/{job_id}/series", { params: { path: { job_id: id } } }, signal),
      refetchInterval: runs ? NAMES_MS : (false as const),
    })),
  });
  const found = [...new Set(answers.flatMap((answer) => answer.data?.series.map((series) => series.name) ?? []))];
  return {
    found: found.sort(lossFirst),
    isLoading: answers.some((answer) => answer.isPending && answer.error === null),
    error: answers.find((answer) => answer.error !== null)?.error ?? null,
  };
}

/** The loss is what one looks at first; others in the order of their names. */
function lossFirst(one: string, other: string): number {
  return Number(other === "loss") - Number(one === "loss") || one.localeCompare(other, "en", { numeric: true });
}

function Smoothing({ weight }: { weight: number }) {
  const address = useAddress();
  const [given, setGiven] = useState(weight);
  const [shown, setShown] = useState(weight);
  if (given !== weight) {
    setGiven(weight);
    setShown(weight);
  }
  return (
    <div className={classes.slider}>
      <div className={classes.label}>
        {words.smoothing} <b className="num">{shown}</b>
      </div>
      <Slider
        thumbLabel={words.smoothing}
        min={0}
        max={0.99}
        step={0.01}
        label={null}
        value={shown}
        onChange={setShown}
        onChangeEnd={(value) => address.set({ smooth: value === 0 ? null : String(value) })}
      />
    </div>
  );
}

interface FieldProps {
  name: "find" | "with";
  label: string;
  placeholder?: string;
  type: "search" | "text";
}

function Field({ name, label, placeholder, type }: FieldProps) {
  const address = useAddress();
  const given = address.get(name) ?? "";
  const [typed, setTyped] = useState(given);
  const send = () => address.set({ [name]: name === "with" ? jobsOf(typed).join(",") : typed });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send();
  };
  return (
    <form onSubmit={submit}>
      <TextInput
        type={type}
        label={label}
        placeholder={placeholder}
        maxLength={200}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        onBlur={send}
      />
    </form>
  );
}
