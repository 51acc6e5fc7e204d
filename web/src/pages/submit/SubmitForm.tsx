import { Button, Group, Progress, SegmentedControl, Stack, Text } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { type FormEvent, useMemo, useRef, useState } from "react";
import { JOB } from "../../api/constraints";
import { useCanChange } from "../../app/Connection";
import { Further } from "../../components/Further";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { Snippet } from "../../components/Snippet";
import { useAddress } from "../../components/useAddress";
import { type Chosen, scriptsOf, usualScript } from "../../files/chosen";
import { bytes, count } from "../../format/format";
import { text } from "../../text";
import { Code } from "./Code";
import { commandOf, type Origin, pythonCode } from "./command";
import { FIELD_NAMES, type FieldName, type Typed } from "./fields";
import { errorsOf, FormProvider, useTyped } from "./form";
import { Outcome, usePreview } from "./Outcome";
import { read } from "./request";
import { More, Size, Surroundings } from "./Sections";
import classes from "./Submit.module.css";
import { type Source, useSubmission } from "./useSubmission";

const words = text.submission;
const MAX_BYTES = 512 * 1024 ** 2;
const MAX_FILES = 20_000;
/** Fields that stand under "More". */
const FURTHER: readonly FieldName[] = FIELD_NAMES.slice(FIELD_NAMES.indexOf("after")).filter((name) => name !== "mode");

interface Props {
  /** The job that is run again. */
  from: string | null;
  /** What it was submitted with; the defaults of a new one. */
  base: Typed;
}

export function SubmitForm({ from, base }: Props) {
  const canChange = useCanChange();
  const { typed, set, touched } = useTyped(base);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [attempted, setAttempted] = useState(false);
  const submission = useSubmission();
  const asked = useMemo(() => read(typed, base, JOB), [typed, base]);
  const preview = usePreview(asked.whole);
  const shown = (name: FieldName) => attempted || touched.has(name) || (typed[name] ?? "") !== (base[name] ?? ""); // by a link
  const errorOf = errorsOf(asked.problems, preview.data?.problems ?? [], submission.refused, shown);
  const form = useRef<HTMLFormElement>(null);
  const codeError = codeProblem(chosen, from, attempted);
  const source: Source | null = from !== null ? { kind: "job", id: from } : chosen && { kind: "code", chosen };
  const submit = () => {
    setAttempted(true);
    const wrong = FIELD_NAMES.some((name) => asked.problems[name] !== undefined);
    if (source === null || wrong || codeProblem(chosen, from, true) !== null || !canChange) {
      window.requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    void submission.submit(source, asked);
  };
  useHotkeys([["mod+Enter", submit]], []);
  const choose = (next: Chosen | null) => {
    setChosen(next);
    submission.forget();
    const script = next && (usualScript(next) ?? (scriptsOf(next).includes(typed.script ?? "") ? typed.script : ""));
    if (next !== null) set("script", script ?? "");
  };
  const change = (name: FieldName, value: string) => {
    if (submission.refused !== null) submission.forget();
    set(name, value);
  };
  const busy = submission.progress !== null;
  return (
    <FormProvider form={{ typed, set: change, errorOf }}>
      <form
        ref={form}
        className={classes.columns}
        noValidate
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          submit();
        }}
      >
        <div className={classes.form}>
          <Section title={words.code}>
            <Code chosen={chosen} onChoose={choose} from={from} error={codeError} disabled={busy} />
          </Section>
          <Section title={words.data}>
            <Surroundings chosen={chosen} />
          </Section>
          <Section title={words.size}>
            <Size />
          </Section>
          <Further open={FURTHER.some((name) => (typed[name] ?? "") !== (base[name] ?? "") && shown(name))}>
            <More again={from !== null} />
          </Further>
        </div>
        <div className={classes.side}>
          <Panel title={words.now}>
            <Outcome
              preview={preview}
              isWrong={FIELD_NAMES.some((name) => name !== "script" && asked.problems[name])}
            />
          </Panel>
          {submission.refused !== null && <Problem error={submission.refused} />}
          {busy ? (
            <Stack gap="xs">
              <Group justify="space-between">
                <Text size="sm" role="status">
                  {submission.progress}
                </Text>
                <Button variant="default" onClick={submission.stop}>
                  {words.stop}
                </Button>
              </Group>
              <Progress value={100 * submission.share} aria-label={words.submit} />
            </Stack>
          ) : (
            <Button
              type="submit"
              size="sm"
              disabled={!canChange}
              rightSection={<kbd className={classes.keys}>{words.keys}</kbd>}
            >
              {words.submit}
            </Button>
          )}
          <Same origin={originOf(from, base, chosen)} typed={typed} body={asked.changes} />
        </div>
      </form>
    </FormProvider>
  );
}

function Section({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <Panel title={title}>
      <Stack gap="sm">{children}</Stack>
    </Panel>
  );
}

/** The same as a command, and as Python. */
function Same({ origin, typed, body }: { origin: Origin; typed: Typed; body: Readonly<Record<string, unknown>> }) {
  const address = useAddress();
  const python = address.get("as") === "python";
  return (
    <Stack gap="xs">
      <SegmentedControl
        aria-label={words.sameAs}
        data={[
          { value: "cli", label: words.cli },
          { value: "python", label: words.python },
        ]}
        value={python ? "python" : "cli"}
        onChange={(value) => address.set({ as: value === "python" ? value : null })}
      />
      <Snippet
        label={python ? words.python : words.cli}
        code={python ? pythonCode(origin, body) : commandOf(origin, typed)}
      />
    </Stack>
  );
}

function originOf(from: string | null, base: Typed, chosen: Chosen | null): Origin {
  if (from !== null) return { kind: "job", id: from, base };
  return { kind: "code", path: chosen?.name ?? ".", script: chosen && usualScript(chosen), base };
}

function codeProblem(chosen: Chosen | null, from: string | null, attempted: boolean): string | null {
  if (from !== null) return null;
  if (chosen === null) return attempted ? words.noCode : null;
  if (chosen.numBytes > MAX_BYTES) return words.tooLarge(bytes(MAX_BYTES));
  if (chosen.files.length > MAX_FILES) return words.tooMany(count(MAX_FILES));
  return scriptsOf(chosen).length === 0 ? words.noScript : null;
}
