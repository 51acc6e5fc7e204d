import { Checkbox, Slider, Switch } from "@mantine/core";
import { useGet } from "../../api/queries";
import { type Chosen, requirementsOf } from "../../files/chosen";
import { count } from "../../format/format";
import { text } from "../../text";
import type { FieldName } from "./fields";
import { ChoiceField, LinesField, NumberField, TextField, useForm } from "./form";
import { Parts } from "./Parts";
import classes from "./Submit.module.css";

const words = text.submission;

/** Data, environment, queue, name. */
export function Surroundings({ chosen, named: isNamed = true }: { chosen: Chosen | null; named?: boolean }) {
  const datasets = useGet("/v1/datasets", { params: { query: { state: ["ready"], limit: 1000 } } });
  const environments = useGet("/v1/environments", { params: { query: { limit: 1000 } } });
  const queues = useGet("/v1/queues", {});
  const named = (environments.data?.environments ?? []).filter((one) => one.state !== "failed").map(({ name }) => name);
  const files = chosen === null ? [] : requirementsOf(chosen);
  return (
    <div className={classes.pair}>
      <ChoiceField
        name="dataset"
        placeholder={words.noDataset}
        searchable
        clearable
        options={same((datasets.data?.datasets ?? []).map(({ name }) => name))}
      />
      <ChoiceField
        name="environment"
        placeholder={words.ownPython}
        searchable
        clearable
        options={[
          ...files.map((file) => ({ value: `requirements:${file}`, label: words.requirements(file) })),
          ...same(named),
        ]}
      />
      <ChoiceField name="queue" options={same((queues.data?.queues ?? []).map(({ queue }) => queue.name))} />
      {isNamed && <TextField name="name" />}
    </div>
  );
}

function same(names: readonly string[]) {
  return names.map((name) => ({ value: name, label: name }));
}

/** How many workers, and into how many parts their batch is cut. */
export function Size() {
  const { typed, set } = useForm();
  const fixed = typed.fixed === "true";
  return (
    <>
      {fixed ? (
        <div className={classes.three}>
          <NumberField name="max_tasks" label={words.processes} />
          <NumberField name="max_restarts" placeholder="3" />
        </div>
      ) : (
        <>
          <div className={classes.three}>
            <NumberField name="min_tasks" />
            <NumberField name="max_tasks" />
            <NumberField name="virtual_workers" placeholder={words.partsByBatch} />
          </div>
          <Parts />
        </>
      )}
      <Priority value={typed.priority ?? ""} onChange={(value) => set("priority", value)} />
      {!fixed && (
        <ChoiceField name="mode" options={Object.entries(words.modes).map(([value, label]) => ({ value, label }))} />
      )}
      <Flag name="fixed" />
    </>
  );
}

function Priority({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const number = Number(value);
  return (
    <div className={classes.priority}>
      <NumberField name="priority" />
      <Slider
        className={classes.slider}
        min={1}
        max={10_000}
        step={1}
        label={(now) => count(now)}
        thumbLabel={words.fields.priority}
        marks={[1, 2500, 5000, 7500, 10_000].map((mark) => ({ value: mark }))}
        value={value !== "" && Number.isFinite(number) ? Math.min(10_000, Math.max(1, number)) : 5000}
        onChange={(next) => onChange(String(next))}
      />
    </div>
  );
}

function Flag({ name, initially = false }: { name: FieldName; initially?: boolean }) {
  const { typed, set } = useForm();
  const label = (words.fields as Record<FieldName, string>)[name];
  const checked = typed[name] === undefined || typed[name] === "" ? initially : typed[name] === "true";
  const change = (next: boolean) => set(name, next === initially ? "" : String(next));
  return name === "fixed" ? (
    <Switch label={label} checked={checked} onChange={(event) => change(event.currentTarget.checked)} />
  ) : (
    <Checkbox size="xs" label={label} checked={checked} onChange={(event) => change(event.currentTarget.checked)} />
  );
}

/** What most submissions need not say. */
export function More({ again, notices = true }: { again: boolean; notices?: boolean }) {
  const { typed } = useForm();
  const fixed = typed.fixed === "true";
  const choices = (of: Readonly<Record<string, string>>) =>
    Object.entries(of).map(([value, label]) => ({ value, label }));
  return (
    <>
      <div className={classes.pair}>
        <LinesField name="env" hint={again ? words.hints.envAgain : words.hints.env} />
        <LinesField name="tags" hint={words.hints.tags} />
        <TextField name="after" hint={words.hints.after} />
        <TextField name="after_any" hint={words.hints.after} />
        <TextField name="weights" hint={words.hints.weights} />
        {!fixed && <TextField name="resume_from" hint={words.hints.resume_from} />}
      </div>
      <div className={classes.three}>
        <TextField name="memory_bytes" placeholder={words.hints.memory_bytes} />
        <TextField name="time_limit_s" placeholder={words.hints.time_limit_s} />
        <NumberField name="slots_per_task" placeholder="1" />
        <TextField name="start_timeout_s" placeholder={words.hints.start_timeout_s} />
        {!fixed && (
          <>
            <TextField name="stall_after_s" placeholder={words.hints.stall_after_s} />
            <ChoiceField name="on_stall" placeholder={words.onStall.warn} clearable options={choices(words.onStall)} />
            <ChoiceField name="balance" placeholder={words.balances.even} clearable options={choices(words.balances)} />
            <NumberField name="checkpoint_freq" placeholder="1" />
            <NumberField name="checkpoint_every_s" placeholder="600" />
            <NumberField name="metrics_every" placeholder={words.hints.metrics_every} />
            <NumberField name="histograms_every" placeholder={words.hints.histograms_every} />
          </>
        )}
      </div>
      {notices && (
        <div className={classes.three}>
          <TextField name="webhook" placeholder="https://" />
          <TextField name="mail" placeholder="ada@example.org" />
          <ChoiceField name="notify_on" placeholder={words.notifyOn.end} clearable options={choices(words.notifyOn)} />
        </div>
      )}
      {!fixed && (
        <>
          <Flag name="tracking" initially />
          <Flag name="audit" />
        </>
      )}
    </>
  );
}
