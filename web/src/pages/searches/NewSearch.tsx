import { Button, Checkbox, Group, Progress, SegmentedControl, Stack } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { type FocusEvent, type FormEvent, useMemo, useRef, useState } from "react";
import { useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { Crumbs } from "../../components/Crumbs";
import { DropFiles } from "../../components/DropFiles";
import { Further } from "../../components/Further";
import { JobField } from "../../components/JobField";
import { Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Snippet } from "../../components/Snippet";
import { useAddress } from "../../components/useAddress";
import { type Chosen, scriptsOf, usualScript } from "../../files/chosen";
import { percent } from "../../format/format";
import { text } from "../../text";
import type { FieldName } from "../submit/fields";
import { ChoiceField, FormProvider, TextField } from "../submit/form";
import outcome from "../submit/Outcome.module.css";
import { More, Size, Surroundings } from "../submit/Sections";
import columns from "../submit/Submit.module.css";
import { AlgorithmPanel } from "./Algorithm";
import { GoalsPanel } from "./Goals";
import { ParametersPanel } from "./Parameters";
import classes from "./Searches.module.css";
import { ChoiceOf, NumberOf, SearchFormProvider, TextOf, useSearchForm } from "./search_fields";
import { bodyOf, hasSameGoals, NEW_SEARCH, PASS_AS, problemsOf, serverField, type TypedSearch } from "./search_form";
import { commandOf, fileOf, pythonCode } from "./search_same";
import { useBegin, useSearchPreview } from "./useNewSearch";

const words = text.searches.create;

/** Begins a search: what may be chosen, what is better, how long. */
export default function NewSearch() {
  const address = useAddress();
  const canChange = useCanChange();
  const job = address.get("job");
  const from = job !== null || address.get("from") === "job" ? "job" : "folder";
  const [typed, setTyped] = useState<TypedSearch>(NEW_SEARCH);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [tried, setTried] = useState(false);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const begin = useBegin();
  const form = useRef<HTMLFormElement>(null);
  const problems = useMemo(() => problemsOf(typed), [typed]);
  const isWrong = Object.keys(problems).length > 0;
  const preview = useSearchPreview(typed, isWrong);
  const told = (isWrong ? [] : (preview.data?.problems ?? [])).filter(
    (one) => one.field !== "name" || (typed.job.name ?? "") !== "",
  );
  const set = (change: Partial<TypedSearch>) => {
    begin.forget();
    setTyped((before) => ({ ...before, ...change }));
  };
  const touch = (field: string) => setTouched((before) => (before.has(field) ? before : new Set(before).add(field)));
  const setJob = (name: FieldName, value: string) => {
    begin.forget();
    setTyped((before) => ({ ...before, job: { ...before.job, [name]: value } }));
    touch(`job.${name}`);
  };
  const errorOf = (field: string): string | null => {
    const server = serverField(field, typed);
    if (begin.error?.of(server)) return begin.error.of(server);
    if (!tried && !touched.has(field)) return null;
    const said = told.find((one) => one.field === server || one.field.startsWith(`${server}.`));
    return problems[field] ?? said?.message ?? null;
  };
  const choose = (files: Chosen | null) => {
    setChosen(files);
    if (files === null) return;
    setJob("script", usualScript(files) ?? typed.job.script ?? "");
    if ((typed.job.name ?? "") === "") setJob("name", nameOf(files.name));
  };
  const hasCode = from === "job" ? job !== null && job !== "" : chosen !== null && chosen.files.length > 0;
  const hasName = (typed.job.name ?? "").trim() !== "";
  const missing = [...(hasCode ? [] : [words.needs.code]), ...(hasName ? [] : [words.needs.name])];
  const start = () => {
    setTried(true);
    if (missing.length === 0 && !isWrong && canChange) begin.start(typed, from === "job" ? (job ?? "") : chosen);
    else window.requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  useHotkeys([["mod+Enter", start]], []);
  return (
    <Page
      title={words.title}
      heading={<Crumbs above={[{ to: "/searches", title: text.nav.searches }]} name={words.title} />}
    >
      <SearchFormProvider form={{ typed, set, errorOf }}>
        <FormProvider form={{ typed: typed.job, set: setJob, errorOf: (name) => errorOf(`job.${name}`) }}>
          <form
            ref={form}
            className={columns.columns}
            noValidate
            onBlur={(event: FocusEvent<HTMLFormElement>) => {
              const { name } = event.target as unknown as HTMLInputElement;
              if (name) touch(name);
            }}
            onSubmit={(event: FormEvent) => {
              event.preventDefault();
              start();
            }}
          >
            <div className={columns.form}>
              <CodePanel from={from} chosen={chosen} onChoose={choose} error={begin.error?.of("code") ?? null} />
              <ParametersPanel />
              <GoalsPanel />
              <AlgorithmPanel />
              <LimitsPanel />
              <Panel title={words.training}>
                <Stack gap="sm">
                  <Surroundings chosen={chosen} named={false} />
                  <Size />
                </Stack>
              </Panel>
              <Further open={false}>
                <Learning />
                <More again={false} notices={false} />
              </Further>
            </div>
            <div className={columns.side}>
              <Panel title={words.now}>
                <Said isWrong={isWrong} told={told} preview={preview} />
              </Panel>
              {begin.error && <Problem error={begin.error} />}
              {begin.sent !== null && (
                <div role="status">
                  <Progress value={100 * begin.sent} aria-label={words.sending(percent(begin.sent))} />
                  {words.sending(percent(begin.sent))}
                </div>
              )}
              {missing.length > 0 && <span className="dim">{`${words.missing}: ${missing.join(", ")}.`}</span>}
              <Button type="submit" size="sm" loading={begin.sent !== null} disabled={!canChange}>
                {words.begin}
              </Button>
              <Same
                code={
                  from === "job"
                    ? { path: `CODE_OF_${job ?? "JOB"}`, script: null }
                    : { path: chosen?.name ?? "train.py", script: chosen && usualScript(chosen) }
                }
              />
            </div>
          </form>
        </FormProvider>
      </SearchFormProvider>
    </Page>
  );
}

function nameOf(source: string): string {
  const name = source.replace(/\.py$/, "").replace(/[^A-Za-z0-9._-]+/g, "-");
  return name.replace(/^[^A-Za-z0-9]+/, "").slice(0, 50);
}

interface CodeProps {
  from: "job" | "folder";
  chosen: Chosen | null;
  onChoose: (chosen: Chosen | null) => void;
  error: string | null;
}

function CodePanel({ from, chosen, onChoose, error }: CodeProps) {
  const address = useAddress();
  const scripts = chosen === null || from === "job" ? [] : scriptsOf(chosen);
  return (
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
            value={address.get("job") ?? ""}
            onChange={(value) => address.set({ from: "job", job: value })}
          />
        ) : (
          <DropFiles label={words.code} chosen={chosen} onChoose={onChoose} ignoring error={error} />
        )}
        <div className={columns.pair}>
          {scripts.length > 0 ? (
            <ChoiceField
              name="script"
              searchable={scripts.length > 10}
              options={scripts.map((name) => ({ value: name, label: name }))}
            />
          ) : (
            <TextField name="script" placeholder="train.py" />
          )}
          <TextField name="args" placeholder="--epochs 27" />
          <TextField name="name" />
        </div>
      </Stack>
    </Panel>
  );
}

function LimitsPanel() {
  const { typed, set } = useSearchForm();
  const { limits } = text.searches;
  return (
    <Panel title={words.limits}>
      <div className={classes.fields}>
        <NumberOf
          field="max_trials"
          label={limits.max_trials}
          placeholder={limits.none}
          value={typed.maxTrials}
          onChange={(maxTrials) => set({ maxTrials })}
        />
        <NumberOf
          field="parallel"
          label={limits.parallel}
          placeholder={limits.auto}
          value={typed.parallel}
          onChange={(parallel) => set({ parallel })}
        />
        <TextOf
          field="max_time_s"
          label={limits.max_time}
          placeholder={limits.timeHint}
          value={typed.maxTime}
          onChange={(maxTime) => set({ maxTime })}
        />
        <NumberOf
          decimal
          field="max_slot_hours"
          label={limits.max_slot_hours}
          placeholder={limits.none}
          value={typed.maxSlotHours}
          onChange={(maxSlotHours) => set({ maxSlotHours })}
        />
        <NumberOf
          decimal
          field="target"
          label={limits.target}
          placeholder={limits.none}
          value={typed.target}
          onChange={(target) => set({ target })}
        />
      </div>
    </Panel>
  );
}

/** From whose trials it learns, how the script gets its values, who sees it. */
function Learning() {
  const { typed, set, errorOf } = useSearchForm();
  const searches = useGet("/v1/searches", { params: { query: { limit: 1000 } } });
  const fitting = (searches.data?.searches ?? []).filter((one) => hasSameGoals(one.settings, typed));
  const names = fitting.map((one) => [one.name, one.name]);
  return (
    <>
      <div className={columns.pair}>
        <ChoiceOf
          field="known"
          label={words.warmStart}
          hint={words.warmStartHint}
          searchable
          options={{ "": words.fromNothing, ...Object.fromEntries(names) }}
          value={typed.warmStart}
          onChange={(warmStart) => set({ warmStart })}
        />
        <TextOf
          field="shared_with"
          label={words.share}
          hint={words.shareHint}
          value={typed.share}
          onChange={(share) => set({ share })}
        />
        <TextOf
          field="description"
          label={text.searches.limits.description}
          value={typed.description}
          onChange={(description) => set({ description })}
        />
      </div>
      <Checkbox.Group
        label={words.passAs}
        value={[...typed.passAs]}
        onChange={(chosen) => set({ passAs: PASS_AS.filter((way) => chosen.includes(way)) })}
        error={errorOf("pass_as")}
      >
        <Group gap="md" mt={4}>
          {PASS_AS.map((way) => (
            <Checkbox key={way} size="xs" value={way} label={words.ways[way] ?? way} />
          ))}
        </Group>
      </Checkbox.Group>
    </>
  );
}

interface SaidProps {
  isWrong: boolean;
  told: readonly { field: string; message: string }[];
  preview: ReturnType<typeof useSearchPreview>;
}

/** What the server says of it. */
function Said({ isWrong, told, preview }: SaidProps) {
  if (isWrong) return <p className={outcome.note}>{words.mend}</p>;
  if (preview.data === undefined) {
    return preview.error === null ? <p className={outcome.note}>{words.asking}</p> : <Problem error={preview.error} />;
  }
  const isSound = told.length === 0;
  return (
    <div className={outcome.outcome} aria-live="polite">
      <p className={isSound ? outcome.headline : outcome.refused}>{isSound ? words.sound : words.refused}</p>
      {told.map((one) => (
        <p key={`${one.field} ${one.message}`} className="wrap">
          {one.field === "" ? one.message : `${one.field}: ${one.message}`}
        </p>
      ))}
      {isSound && preview.data.sentence !== "" && (
        <p className={`${outcome.sentence} wrap`}>{words.firstTrial(preview.data.sentence)}</p>
      )}
      {preview.data.notes.map((note) => (
        <p key={note} className={`${outcome.note} wrap`}>
          {note}
        </p>
      ))}
    </div>
  );
}

type As = "cli" | "python" | "file";

/** The same as a command, as Python, and as a search file. */
function Same({ code }: { code: { path: string; script: string | null } }) {
  const { typed } = useSearchForm();
  const address = useAddress();
  const asked = address.get("as");
  const as: As = asked === "python" || asked === "file" ? asked : "cli";
  const said = {
    cli: () => commandOf(typed, code),
    python: () => pythonCode(typed, code, bodyOf(typed)),
    file: () => fileOf(typed, code),
  };
  return (
    <Stack gap="xs">
      <SegmentedControl
        aria-label={text.submission.sameAs}
        data={Object.entries(words.same).map(([value, label]) => ({ value, label }))}
        value={as}
        onChange={(value) => address.set({ as: value === "cli" ? null : value })}
      />
      <Snippet label={words.same[as]} code={said[as]()} />
    </Stack>
  );
}
