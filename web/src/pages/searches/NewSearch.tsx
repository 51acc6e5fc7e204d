import {
  ActionIcon,
  Autocomplete,
  Button,
  Checkbox,
  Group,
  NumberInput,
  Progress,
  SegmentedControl,
  Select,
  Stack,
  Switch,
  Text,
  TextInput,
} from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useNavigate } from "react-router";
import { ask, type Schemas } from "../../api/client";
import { addressOf } from "../../api/place";
import { Refused, Unreachable } from "../../api/problem";
import { useGet } from "../../api/queries";
import { send } from "../../api/send";
import { useCanChange } from "../../app/Connection";
import { BELOW } from "../../components/below";
import { Crumbs } from "../../components/Crumbs";
import { DropFiles } from "../../components/DropFiles";
import { JobField } from "../../components/JobField";
import { Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { QueueField } from "../../components/QueueField";
import { Snippet } from "../../components/Snippet";
import { useAddress } from "../../components/useAddress";
import { type Chosen, scriptsOf, usualScript } from "../../files/chosen";
import { tarGzOf } from "../../files/tar";
import { percent } from "../../format/format";
import { text } from "../../text";
import { searchesChanged } from "./changed";
import classes from "./Searches.module.css";
import {
  bodyOf,
  commandOf,
  type Kind,
  NEW_PARAMETER,
  NEW_SEARCH,
  problemsOf,
  type TypedParameter,
  type TypedSearch,
} from "./search_form";

const words = text.searches.create;
const PRUNERS = ["median", "percentile", "wilcoxon", "patient", "threshold"];

type Set = (change: Partial<TypedSearch>) => void;
type ErrorOf = (field: string) => string | null;

/** Begins a search: what may be chosen, what is better, how long. */
export default function NewSearch() {
  const address = useAddress();
  const canChange = useCanChange();
  const job = address.get("job");
  const from = job !== null || address.get("from") === "job" ? "job" : "folder";
  const [typed, setTyped] = useState<TypedSearch>(NEW_SEARCH);
  const set: Set = (change) => setTyped((before) => ({ ...before, ...change }));
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [tried, setTried] = useState(false);
  const begin = useBegin();
  const problems = problemsOf(typed);
  const hasCode = from === "job" ? job !== null && job !== "" : chosen !== null && chosen.files.length > 0;
  const missing = [...(hasCode ? [] : [words.needs.code]), ...(typed.name.trim() === "" ? [words.needs.name] : [])];
  const errorOf: ErrorOf = (field) =>
    (tried ? (problems[field] ?? null) : null) ?? begin.error?.of(serverField(field, typed)) ?? null;
  const choose = (files: Chosen | null) => {
    setChosen(files);
    if (files !== null) set({ script: usualScript(files) ?? typed.script, name: typed.name || nameOf(files.name) });
  };
  const source = from === "job" ? `CODE_OF_${job ?? "JOB"}` : (chosen?.name ?? "train.py");
  return (
    <Page
      title={words.title}
      heading={<Crumbs above={[{ to: "/searches", title: text.nav.searches }]} name={words.title} />}
    >
      <form
        className={classes.form}
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (missing.length === 0 && Object.keys(problems).length === 0)
            begin.start(typed, from === "job" ? (job ?? "") : chosen);
        }}
      >
        <Panel title={words.code}>
          <Stack gap="md">
            <SegmentedControl
              w="fit-content"
              aria-label={words.fromLabel}
              value={from}
              onChange={(value) => address.set({ from: value === "job" ? "job" : null, job: null })}
              data={Object.entries(words.from).map(([value, label]) => ({ value, label }))}
            />
            {from === "job" ? (
              <JobField
                label={words.job}
                description={words.jobHint}
                value={job ?? ""}
                onChange={(value) => address.set({ from: "job", job: value })}
              />
            ) : (
              <DropFiles
                label={words.code}
                chosen={chosen}
                onChoose={choose}
                ignoring
                error={begin.error?.of("code")}
              />
            )}
            <div className={classes.fields}>
              <Autocomplete
                {...BELOW}
                size="xs"
                label={words.script}
                description={words.scriptHint}
                data={chosen === null ? [] : scriptsOf(chosen).slice(0, 100)}
                value={typed.script}
                onChange={(script) => set({ script })}
                error={errorOf("script")}
              />
              <TextInput
                {...BELOW}
                label={words.args}
                description={words.argsHint}
                value={typed.args}
                onChange={(event) => set({ args: event.currentTarget.value })}
                error={errorOf("args")}
              />
              <TextInput
                {...BELOW}
                label={words.name}
                description={words.nameHint}
                required
                value={typed.name}
                onChange={(event) => set({ name: event.currentTarget.value.trim() })}
                error={errorOf("name")}
              />
            </div>
          </Stack>
        </Panel>
        <ParametersPanel typed={typed} set={set} errorOf={errorOf} />
        <ObjectivePanel typed={typed} set={set} errorOf={errorOf} />
        <AlgorithmPanel typed={typed} set={set} errorOf={errorOf} />
        <LimitsPanel typed={typed} set={set} errorOf={errorOf} />
        <TrainingPanel typed={typed} set={set} errorOf={errorOf} />
        <Panel title={words.cli}>
          <Snippet code={commandOf(typed, source)} label={words.cli} />
        </Panel>
        {begin.error && <Problem error={begin.error} />}
        {begin.sent !== null && (
          <div role="status">
            <Progress value={100 * begin.sent} aria-label={words.sending(percent(begin.sent))} />
            {words.sending(percent(begin.sent))}
          </div>
        )}
        <div className={classes.foot}>
          <Text c="dimmed">{missing.length > 0 ? `${words.missing}: ${missing.join(", ")}.` : ""}</Text>
          <Button type="submit" loading={begin.sent !== null} disabled={!canChange || missing.length > 0}>
            {words.begin}
          </Button>
        </div>
      </form>
    </Page>
  );
}

/** The field of the server that a field of the form fills. */
function serverField(field: string, typed: TypedSearch): string {
  const [, key, part] = /^parameters\.(\d+)\.(\w+)$/.exec(field) ?? [];
  if (key === undefined) return field === "metric" ? "objectives.0.metric" : field;
  const name = typed.parameters.find((one) => one.key === Number(key))?.name.trim() ?? "";
  return part === "name" ? `parameters.${name}` : `parameters.${name}.${part}`;
}

function nameOf(source: string): string {
  const name = source.replace(/\.py$/, "").replace(/[^A-Za-z0-9._-]+/g, "-");
  return name.replace(/^[^A-Za-z0-9]+/, "").slice(0, 50);
}

function useBegin() {
  const navigate = useNavigate();
  const [sent, setSent] = useState<number | null>(null);
  const [error, setError] = useState<Refused | null>(null);
  const start = (typed: TypedSearch, code: Chosen | string | null) => {
    setError(null);
    setSent(0);
    void sendSearch(typed, code, setSent)
      .then((view) => {
        searchesChanged();
        navigate(`/searches/${view.name}`);
      })
      .catch((problem: unknown) => setError(problem instanceof Refused ? problem : new Unreachable()))
      .finally(() => setSent(null));
  };
  return { start, sent, error };
}

async function sendSearch(
  typed: TypedSearch,
  code: Chosen | string | null,
  onSent: (share: number) => void,
): Promise<Schemas["SearchView"]> {
  const packed =
    typeof code === "string"
      ? await (await ask(addressOf(`/v1/jobs/${encodeURIComponent(code)}/code`))).blob()
      : await tarGzOf(code?.files ?? []);
  const form = new FormData();
  form.append("job", JSON.stringify(bodyOf(typed)));
  form.append("code", packed, "code.tar.gz");
  return send<Schemas["SearchView"]>({
    method: "POST",
    path: "/v1/searches",
    body: form,
    onProgress: (done, total) => onSent(total > 0 ? done / total : 0),
  });
}

interface PartProps {
  typed: TypedSearch;
  set: Set;
  errorOf: ErrorOf;
}

function ParametersPanel({ typed, set, errorOf }: PartProps) {
  const change = (key: number, part: Partial<TypedParameter>) =>
    set({ parameters: typed.parameters.map((one) => (one.key === key ? { ...one, ...part } : one)) });
  const next = Math.max(-1, ...typed.parameters.map((one) => one.key)) + 1;
  return (
    <Panel title={words.parameters}>
      <Text c="dimmed" mb="sm">
        {words.parametersHint}
      </Text>
      {typed.parameters.map((one) => (
        <ParameterRow
          key={one.key}
          parameter={one}
          onChange={(part) => change(one.key, part)}
          onRemove={
            typed.parameters.length > 1
              ? () => set({ parameters: typed.parameters.filter((other) => other.key !== one.key) })
              : null
          }
          errorOf={(field) => errorOf(`parameters.${one.key}.${field}`)}
        />
      ))}
      <Button
        variant="default"
        leftSection={<IconPlus size={16} />}
        disabled={typed.parameters.length >= 100}
        onClick={() => set({ parameters: [...typed.parameters, { ...NEW_PARAMETER, key: next }] })}
      >
        {words.add}
      </Button>
    </Panel>
  );
}

interface RowProps {
  parameter: TypedParameter;
  onChange: (part: Partial<TypedParameter>) => void;
  onRemove: (() => void) | null;
  errorOf: ErrorOf;
}

function ParameterRow({ parameter, onChange, onRemove, errorOf }: RowProps) {
  const { kind, log } = parameter;
  const field = (name: "low" | "high" | "step", label: string, disabled = false) => (
    <TextInput
      label={label}
      inputMode="decimal"
      disabled={disabled}
      value={disabled ? "" : parameter[name]}
      onChange={(event) => onChange({ [name]: event.currentTarget.value })}
      error={errorOf(name)}
    />
  );
  return (
    <div className={classes.parameter}>
      <TextInput
        label={words.parameter}
        value={parameter.name}
        onChange={(event) => onChange({ name: event.currentTarget.value.trim() })}
        error={errorOf("name")}
      />
      <Select
        label={words.kind}
        allowDeselect={false}
        data={Object.entries(words.kinds).map(([value, label]) => ({ value, label }))}
        value={kind}
        onChange={(value) => onChange({ kind: (value ?? "float") as Kind })}
      />
      {kind === "choice" && (
        <div className={classes.wide}>
          <TextInput
            label={words.choices}
            placeholder={words.choicesHint}
            value={parameter.choices}
            onChange={(event) => onChange({ choices: event.currentTarget.value })}
            error={errorOf("choices")}
          />
        </div>
      )}
      {kind === "fixed" && (
        <div className={classes.wide}>
          <TextInput
            label={words.value}
            value={parameter.value}
            onChange={(event) => onChange({ value: event.currentTarget.value })}
            error={errorOf("value")}
          />
        </div>
      )}
      {(kind === "float" || kind === "int") && (
        <>
          {field("low", words.low)}
          {field("high", words.high)}
          {field("step", words.step, log)}
          <Checkbox
            size="xs"
            mt={26}
            label={words.log}
            aria-label={words.logLabel(parameter.name || words.parameter)}
            checked={log}
            onChange={(event) => onChange({ log: event.currentTarget.checked })}
          />
        </>
      )}
      {onRemove && (
        <ActionIcon
          mt={21}
          size={30}
          variant="subtle"
          color="gray"
          aria-label={words.removeParameter(parameter.name || words.parameter)}
          onClick={onRemove}
        >
          <IconTrash size={16} />
        </ActionIcon>
      )}
    </div>
  );
}

function ObjectivePanel({ typed, set, errorOf }: PartProps) {
  const directions = Object.entries(words.directions).map(([value, label]) => ({ value, label }));
  return (
    <Panel title={words.objective}>
      <div className={classes.fields}>
        <TextInput
          {...BELOW}
          label={words.metric}
          description={words.metricHint}
          required
          value={typed.metric}
          onChange={(event) => set({ metric: event.currentTarget.value })}
          error={errorOf("metric")}
        />
        <Select
          {...BELOW}
          label={words.direction}
          allowDeselect={false}
          data={directions}
          value={typed.direction}
          onChange={(value) => set({ direction: value === "maximize" ? "maximize" : "minimize" })}
        />
        <Select
          {...BELOW}
          label={words.reading}
          allowDeselect={false}
          data={Object.entries(words.readings).map(([value, label]) => ({ value, label }))}
          value={typed.reading}
          onChange={(value) => set({ reading: value === "min" || value === "max" ? value : "last" })}
        />
        <TextInput
          {...BELOW}
          label={words.second}
          description={words.secondHint}
          value={typed.second}
          onChange={(event) => set({ second: event.currentTarget.value })}
          error={errorOf("objectives.1.metric")}
        />
        {typed.second.trim() !== "" && (
          <Select
            {...BELOW}
            label={words.secondDirection}
            allowDeselect={false}
            data={directions}
            value={typed.secondDirection}
            onChange={(value) => set({ secondDirection: value === "maximize" ? "maximize" : "minimize" })}
          />
        )}
      </div>
    </Panel>
  );
}

function AlgorithmPanel({ typed, set, errorOf }: PartProps) {
  const installed = useGet("/v1/algorithms", {}, { retry: false });
  const own = (installed.data?.algorithms ?? []).map((one) => ({ value: one.name, label: one.name }));
  return (
    <Panel title={words.algorithm}>
      <div className={classes.fields}>
        <Select
          label={words.sampler}
          allowDeselect={false}
          searchable
          data={[...Object.entries(words.samplers).map(([value, label]) => ({ value, label })), ...own]}
          value={typed.sampler}
          onChange={(value) => set({ sampler: value ?? "tpe" })}
          error={errorOf("sampler")}
        />
        <NumberField
          label={words.seed}
          value={typed.seed}
          onChange={(seed) => set({ seed })}
          error={errorOf("sampler.seed")}
        />
        {!typed.halving && (
          <Select
            {...BELOW}
            label={words.pruner}
            description={words.prunerHint}
            data={[{ value: "", label: words.noPruner }, ...PRUNERS.map((value) => ({ value, label: value }))]}
            allowDeselect={false}
            value={typed.pruner}
            onChange={(value) => set({ pruner: value ?? "" })}
            error={errorOf("pruner")}
          />
        )}
      </div>
      <Switch
        mt="md"
        label={words.halvingOn}
        description={words.halvingHint}
        checked={typed.halving}
        onChange={(event) => set({ halving: event.currentTarget.checked })}
      />
      {typed.halving && (
        <Group gap="md" mt="sm" align="flex-start">
          <NumberField
            label={words.first}
            value={typed.first}
            onChange={(first) => set({ first })}
            error={errorOf("halving.min")}
          />
          <NumberField
            label={words.last}
            value={typed.last}
            onChange={(last) => set({ last })}
            error={errorOf("halving.max") ?? errorOf("halving")}
          />
          <NumberField
            label={words.factor}
            value={typed.factor}
            onChange={(factor) => set({ factor })}
            error={errorOf("halving.factor")}
          />
        </Group>
      )}
    </Panel>
  );
}

interface NumberProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  error: string | null;
  placeholder?: string;
  decimal?: boolean;
}

function NumberField({ label, value, onChange, error, placeholder, decimal = false }: NumberProps) {
  return (
    <NumberInput
      label={label}
      {...(placeholder && { placeholder })}
      allowDecimal={decimal}
      allowNegative={decimal}
      value={value === "" ? "" : Number(value)}
      onChange={(next) => onChange(String(next))}
      error={error}
    />
  );
}

function LimitsPanel({ typed, set, errorOf }: PartProps) {
  const { limits } = text.searches;
  return (
    <Panel title={words.limits}>
      <div className={classes.fields}>
        <NumberField
          label={limits.max_trials}
          placeholder={limits.none}
          value={typed.maxTrials}
          onChange={(maxTrials) => set({ maxTrials })}
          error={errorOf("max_trials")}
        />
        <NumberField
          label={limits.parallel}
          placeholder={limits.auto}
          value={typed.parallel}
          onChange={(parallel) => set({ parallel })}
          error={errorOf("parallel")}
        />
        <TextInput
          label={limits.max_time}
          placeholder={limits.timeHint}
          value={typed.maxTime}
          onChange={(event) => set({ maxTime: event.currentTarget.value })}
          error={errorOf("max_time_s")}
        />
        <NumberField
          decimal
          label={limits.max_slot_hours}
          placeholder={limits.none}
          value={typed.maxSlotHours}
          onChange={(maxSlotHours) => set({ maxSlotHours })}
          error={errorOf("max_slot_hours")}
        />
        <NumberField
          decimal
          label={limits.target}
          placeholder={limits.none}
          value={typed.target}
          onChange={(target) => set({ target })}
          error={errorOf("target")}
        />
      </div>
    </Panel>
  );
}

function TrainingPanel({ typed, set, errorOf }: PartProps) {
  const datasets = useGet("/v1/datasets", {});
  return (
    <Panel title={words.training}>
      <div className={classes.fields}>
        <NumberField
          label={words.max}
          value={typed.maxTasks}
          onChange={(maxTasks) => set({ maxTasks })}
          error={errorOf("max_tasks")}
        />
        <QueueField
          label={words.queue}
          value={typed.queue}
          onChange={(queue) => set({ queue })}
          error={errorOf("queue")}
        />
        <NumberField
          label={words.priority}
          value={typed.priority}
          onChange={(priority) => set({ priority })}
          error={errorOf("priority")}
        />
        <Autocomplete
          size="xs"
          label={words.dataset}
          data={(datasets.data?.datasets ?? []).map((dataset) => dataset.name)}
          value={typed.dataset}
          onChange={(dataset) => set({ dataset })}
          error={errorOf("dataset")}
        />
        <TextInput
          label={words.environment}
          value={typed.environment}
          onChange={(event) => set({ environment: event.currentTarget.value })}
          error={errorOf("environment")}
        />
      </div>
    </Panel>
  );
}
