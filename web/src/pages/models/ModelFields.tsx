import { NumberInput, Select, TagsInput, Textarea, TextInput } from "@mantine/core";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { text } from "../../text";
import { defaultOf, type ModelForm, numbersOf, type Parameter, type Tables, written } from "./model_form";
import classes from "./models.module.css";

const words = text.models;

export interface FieldsProps {
  form: ModelForm;
  change: (form: ModelForm) => void;
  tables: Tables;
  /** What is wrong with a field, in the server's words. */
  wrong: (field: string) => string | null;
}

/** The numbers of a training: those of all, of its optimizer, and of how the learning rate goes. */
export function NumberFields({ form, change, tables, wrong }: FieldsProps) {
  const shown = numbersOf(tables, form.numbers);
  const set = (name: string, value: string) => change({ ...form, numbers: { ...form.numbers, [name]: value } });
  const one = (name: string) => {
    const number = tables.numbers.find((candidate) => candidate.name === name);
    if (number === undefined) return null;
    return (
      <ValueField
        key={name}
        label={words.names[name] ?? name}
        kind={number.kind}
        value={form.numbers[name] ?? ""}
        onChange={(value) => set(name, value)}
        usual={number.default === null ? null : written(number.default)}
        open={shown.needed.includes(name) ? words.form.needed : words.form.left}
        hint={number.description}
        error={wrong(`hyperparameters.${name}`)}
      />
    );
  };
  return (
    <fieldset className={classes.fields}>
      <legend>{words.form.numbers}</legend>
      {shown.always.map(one)}
      <Select
        label={words.form.optimizer}
        data={tables.optimizers.map(({ name }) => name)}
        value={shown.optimizer}
        onChange={(value) => set("optimizer", value ?? "")}
        allowDeselect={false}
        searchable
        error={wrong("hyperparameters.optimizer")}
      />
      {shown.ofOptimizer.map(one)}
      <Select
        label={words.form.policy}
        data={tables.lr_policies.map(({ name }) => name)}
        value={shown.policy}
        onChange={(value) => set("lr_policy", value ?? defaultOf(tables, "lr_policy") ?? "")}
        allowDeselect={false}
        searchable
        error={wrong("hyperparameters.lr_policy")}
      />
      {shown.ofPolicy.map(one)}
    </fieldset>
  );
}

interface ParametersProps extends Omit<FieldsProps, "tables"> {
  declared: readonly Parameter[];
}

/** What the template's code asks for by name. */
export function ParameterFields({ form, change, declared, wrong }: ParametersProps) {
  if (declared.length === 0) return null;
  return (
    <fieldset className={classes.fields}>
      <legend>{words.form.parameters}</legend>
      {declared.map((parameter) => (
        <ValueField
          key={parameter.name}
          label={parameter.name}
          kind={parameter.kind}
          choices={parameter.choices}
          value={form.parameters[parameter.name] ?? ""}
          onChange={(value) => change({ ...form, parameters: { ...form.parameters, [parameter.name]: value } })}
          usual={parameter.default == null ? null : written(parameter.default)}
          open={words.form.needed}
          hint={[parameter.description, words.form.bounds(parameter.minimum ?? null, parameter.maximum ?? null)]
            .filter(Boolean)
            .join(" · ")}
          error={wrong(`parameters.${parameter.name}`)}
        />
      ))}
    </fieldset>
  );
}

interface ValueProps {
  label: string;
  kind: Tables["numbers"][number]["kind"] | Parameter["kind"];
  choices?: readonly string[];
  value: string;
  onChange: (value: string) => void;
  /** What it is if it is left out; null: nothing. */
  usual: string | null;
  /** What is said of a field that has no default. */
  open: string;
  hint: string;
  error: string | null;
}

function ValueField({ label, kind, choices, value, onChange, usual, open, hint, error }: ValueProps) {
  const placeholder = usual === null ? open : words.form.optional(usual);
  const common = { label: <bdi>{label}</bdi>, description: hint || undefined, error, placeholder };
  if (kind === "bool" || kind === "choice") {
    const data =
      kind === "bool"
        ? [
            { value: "true", label: words.form.yes },
            { value: "false", label: words.form.no },
          ]
        : [...new Set(choices ?? [])];
    return <Select {...common} data={data} value={value || null} onChange={(next) => onChange(next ?? "")} clearable />;
  }
  const isList = kind === "ints" || kind === "floats";
  return (
    <TextInput
      {...common}
      description={isList ? [hint, words.form.list].filter(Boolean).join(" · ") : common.description}
      inputMode={kind === "text" || isList ? "text" : "decimal"}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

interface PlaceProps extends Omit<FieldsProps, "tables"> {
  /** Not the workers, which stand elsewhere. */
  withoutWorkers?: boolean;
}

/** Workers, queue, priority and environment. */
export function PlaceFields({ form, change, wrong, withoutWorkers = false }: PlaceProps) {
  return (
    <fieldset className={classes.fields}>
      <legend>{words.form.place}</legend>
      {!withoutWorkers && <WorkerFields form={form} change={change} wrong={wrong} />}
      <QueueField form={form} change={change} wrong={wrong} />
      <NumberInput
        label={words.model.priority}
        min={1}
        max={10_000}
        clampBehavior="none"
        value={form.priority}
        onChange={(value) => change({ ...form, priority: Number(value) })}
        error={wrong("priority")}
      />
      <EnvironmentField form={form} change={change} wrong={wrong} />
      {form.engine !== "distributed" && (
        <TextInput
          label={words.model.histogramsField}
          placeholder={words.model.noHistograms}
          inputMode="numeric"
          value={form.histogramsEvery}
          onChange={(event) => change({ ...form, histogramsEvery: event.currentTarget.value })}
          error={wrong("histograms_every")}
        />
      )}
    </fieldset>
  );
}

interface WorkersProps extends Omit<FieldsProps, "tables"> {
  /** Whether one begins there. */
  first?: boolean;
}

export function WorkerFields({ form, change, wrong, first = false }: WorkersProps) {
  return (
    <>
      <NumberInput
        label={form.engine === "distributed" ? words.trainDialog.processes : words.trainDialog.maxWorkers}
        data-autofocus={first || undefined}
        min={1}
        max={4096}
        clampBehavior="none"
        disabled={form.engine === "single"}
        value={form.engine === "single" ? 1 : form.maxWorkers}
        onChange={(value) => change({ ...form, maxWorkers: Number(value) })}
        error={wrong("max_workers")}
      />
      <NumberInput
        label={words.trainDialog.slots}
        min={1}
        max={64}
        clampBehavior="none"
        value={form.slotsPerWorker}
        onChange={(value) => change({ ...form, slotsPerWorker: Number(value) })}
        error={wrong("slots_per_worker")}
      />
    </>
  );
}

type OneField = Omit<FieldsProps, "tables">;

function QueueField({ form, change, wrong }: OneField) {
  const queues = useGet("/v1/queues", {}, { enabled: useMay("pool:read") });
  const names = queues.data?.queues.map(({ queue }) => queue.name) ?? [];
  return (
    <Select
      label={words.model.queue}
      data={withValue(names, form.queue)}
      value={form.queue}
      onChange={(value) => change({ ...form, queue: value ?? "default" })}
      allowDeselect={false}
      searchable
      error={wrong("queue")}
    />
  );
}

function EnvironmentField({ form, change, wrong }: OneField) {
  const environments = useGet("/v1/environments", { params: { query: { limit: 1000 } } });
  const names = environments.data?.environments.map(({ name }) => name) ?? [];
  return (
    <Select
      label={words.model.environment}
      placeholder={words.model.usual}
      data={withValue(names, form.environment)}
      value={form.environment || null}
      onChange={(value) => change({ ...form, environment: value ?? "" })}
      clearable
      searchable
      error={wrong("environment")}
    />
  );
}

/** The data set that is trained on: one of those that are ready. */
export function DatasetField({ form, change, wrong }: OneField) {
  const datasets = useGet("/v1/datasets", { params: { query: { limit: 1000 } } }, { enabled: useMay("data:read") });
  const names = datasets.data?.datasets.filter(({ state }) => state === "ready").map(({ name }) => name) ?? [];
  return (
    <Select
      label={words.form.dataset}
      placeholder={words.form.noDataset}
      data={withValue(names, form.dataset)}
      value={form.dataset || null}
      onChange={(value) => change({ ...form, dataset: value ?? "" })}
      clearable
      searchable
      error={wrong("dataset")}
    />
  );
}

export function EngineField({ form, change, wrong, engines }: OneField & { engines: readonly ModelForm["engine"][] }) {
  return (
    <Select
      label={words.form.engine}
      description={words.engineHints[form.engine]}
      data={(engines.length > 0 ? engines : [form.engine]).map((engine) => ({
        value: engine,
        label: words.engines[engine] ?? engine,
      }))}
      value={form.engine}
      onChange={(value) => change({ ...form, engine: (value ?? form.engine) as ModelForm["engine"] })}
      allowDeselect={false}
      error={wrong("engine")}
    />
  );
}

export function ShareFields({ form, change, wrong }: OneField) {
  return (
    <fieldset className={classes.fields}>
      <legend>{words.form.share}</legend>
      <TagsInput
        className={classes.wide}
        size="xs"
        label={words.form.shareLabel}
        description={words.form.shareHint}
        value={[...form.sharedWith]}
        onChange={(value) => change({ ...form, sharedWith: value })}
        error={wrong("shared_with")}
      />
      <Textarea
        className={classes.wide}
        label={words.model.description}
        autosize
        minRows={2}
        maxLength={4000}
        value={form.description}
        onChange={(event) => change({ ...form, description: event.currentTarget.value })}
        error={wrong("description")}
      />
    </fieldset>
  );
}

function withValue(names: readonly string[], value: string): string[] {
  return [...new Set(value === "" ? names : [...names, value])];
}
