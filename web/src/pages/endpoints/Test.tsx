import { Button, Group, SegmentedControl, Select, Stack, Tabs, Text, Textarea } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Schemas } from "../../api/client";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { Snippet } from "../../components/Snippet";
import { useAddress } from "../../components/useAddress";
import { duration, measure } from "../../format/format";
import { text } from "../../text";
import { callsOf, type Language } from "./calls";
import classes from "./Endpoints.module.css";
import { exampleRequest, inputsOf, largest, outputsOf } from "./inputs";
import { PictureField } from "./PictureField";
import { type EndpointView, livingVersions, mainVersion } from "./shown";

const words = text.endpoints.test;
type Form = "infer" | "generate" | "raw";

/** A form to ask the endpoint, what it answers, and the code that does the same. */
export function Test({ endpoint }: { endpoint: EndpointView }) {
  const may = useMay("infer");
  return (
    <div className={classes.two}>
      {may ? <Ask endpoint={endpoint} /> : <Panel title={words.title}>{words.mayNot}</Panel>}
      <Code endpoint={endpoint} />
    </div>
  );
}

function Ask({ endpoint }: { endpoint: EndpointView }) {
  const address = useAddress();
  const canChange = useCanChange();
  const main = mainVersion(endpoint);
  const inputs = useMemo(() => inputsOf(main?.metadata ?? {}), [main?.metadata]);
  const isIbm = main?.runner === "redhare";
  const mode = address.get("with") ?? (inputs.some((input) => input.shape.length >= 3) ? "picture" : "json");
  const form = (address.get("form") as Form | null) ?? (isIbm ? "raw" : "infer");
  const version = form === "raw" ? null : Number(address.get("version")) || null;
  const [body, setBody] = useState(() => bodyOf(inputs));
  const [picture, setPicture] = useState<string | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const [roundTrip, setRoundTrip] = useState<number | null>(null);
  const predict = useChange("post", "/v1/endpoints/{name}/predict");
  const ask = () => {
    const sent = mode === "picture" ? picture : body;
    if (sent === null) return;
    try {
      JSON.parse(sent);
    } catch (error) {
      setWrong(words.notJson(error instanceof Error ? error.message : String(error)));
      return;
    }
    setWrong(null);
    const began = performance.now();
    predict.mutate(
      {
        params: {
          path: { name: endpoint.name },
          query: { form: mode === "picture" ? "infer" : form, ...(version !== null && { version }) },
        },
        body: sent,
        bodySerializer: (text: unknown) => String(text),
        headers: { "Content-Type": "application/json" },
      },
      { onSettled: () => setRoundTrip((performance.now() - began) / 1000) },
    );
  };
  return (
    <Panel title={words.title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <Stack gap="md">
          <SegmentedControl
            aria-label={words.as}
            value={mode}
            onChange={(value) => address.set({ with: value })}
            data={[
              { value: "picture", label: words.picture },
              { value: "json", label: words.json },
            ]}
          />
          {mode === "picture" ? (
            <PictureField inputs={inputs} onRequest={setPicture} />
          ) : (
            <JsonFields
              form={form}
              onForm={(value) => address.set({ form: value, version: null })}
              body={body}
              onBody={setBody}
              error={wrong}
              onExample={inputs.length > 0 ? () => setBody(bodyOf(inputs)) : null}
            />
          )}
          <Group gap="md" align="flex-end">
            <Select
              label={words.version}
              w={180}
              allowDeselect={false}
              disabled={mode === "json" && form === "raw"}
              data={[
                { value: "", label: words.byTraffic },
                ...livingVersions(endpoint).map((one) => ({ value: String(one.number), label: words.by(one.number) })),
              ]}
              value={version === null ? "" : String(version)}
              onChange={(value) => address.set({ version: value })}
            />
            <Button
              type="submit"
              loading={predict.isPending}
              disabled={!canChange || !endpoint.started || (mode === "picture" && picture === null)}
            >
              {words.ask}
            </Button>
            {!endpoint.started && <Text c="dimmed">{words.stopped}</Text>}
          </Group>
        </Stack>
      </form>
      <div style={{ marginTop: 16 }} aria-live="polite">
        {predict.isPending && <Text c="dimmed">{words.asking}</Text>}
        {predict.error && <Problem error={predict.error} />}
        {predict.data && <Shown answer={predict.data} roundTrip={roundTrip} />}
        {predict.isIdle && <Text c="dimmed">{words.nothing}</Text>}
      </div>
    </Panel>
  );
}

function bodyOf(inputs: ReturnType<typeof inputsOf>): string {
  return JSON.stringify(exampleRequest(inputs) ?? { inputs: [] }, null, 1).replace(
    /\[\s+((?:-?[\d.]+,?\s*)+)\]/g,
    (_, list: string) => `[${list.replace(/\s+/g, " ").trim()}]`,
  );
}

interface JsonProps {
  form: Form;
  onForm: (form: Form) => void;
  body: string;
  onBody: (body: string) => void;
  error: string | null;
  onExample: (() => void) | null;
}

function JsonFields({ form, onForm, body, onBody, error, onExample }: JsonProps) {
  return (
    <>
      <Select
        label={words.form}
        allowDeselect={false}
        data={Object.entries(words.forms).map(([value, label]) => ({ value, label }))}
        value={form}
        onChange={(value) => onForm((value ?? "infer") as Form)}
      />
      <Textarea
        label={words.body}
        autosize
        minRows={6}
        maxRows={16}
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        value={body}
        onChange={(event) => onBody(event.currentTarget.value)}
        error={error}
      />
      {onExample && (
        <Button variant="default" w="fit-content" onClick={onExample}>
          {words.example}
        </Button>
      )}
    </>
  );
}

function Shown({ answer, roundTrip }: { answer: Schemas["PredictView"]; roundTrip: number | null }) {
  const outputs = answer.status === 200 ? outputsOf(answer.text) : null;
  const best = outputs?.length ? largest(outputs[0]?.data ?? []) : [];
  const top = best[0];
  const [low, high] = [Math.min(0, ...best.map((one) => one.value)), Math.max(...best.map((one) => one.value))];
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="xs">
        {top === undefined ? (
          <b style={{ color: answer.status === 200 ? undefined : "var(--state-failed)" }}>
            {words.status(answer.status)}
          </b>
        ) : (
          <span className={classes.big}>{words.classOf(top.index)}</span>
        )}
        <span className="dim num">
          {answer.version !== null && `${words.by(answer.version)} · `}
          {duration(answer.took_s)}
          {roundTrip !== null && ` · ${duration(roundTrip)} ${words.roundTrip}`}
        </span>
      </Group>
      {best.length > 0 && (
        <ul className={classes.bars} aria-label={words.best}>
          {best.map((one) => (
            <li key={one.index}>
              <span>{words.classOf(one.index)}</span>
              <span className={classes.bar} aria-hidden>
                <div style={{ width: `${high > low ? (100 * (one.value - low)) / (high - low) : 0}%` }} />
              </span>
              <span className="num">{measure(one.value)}</span>
            </li>
          ))}
        </ul>
      )}
      <Snippet code={pretty(answer.text)} label={words.answer} />
      {!answer.is_whole && <Text c="dimmed">{words.cut}</Text>}
    </Stack>
  );
}

function pretty(answer: string): string {
  if (answer.length > 200_000) return answer.slice(0, 200_000);
  try {
    const short = JSON.stringify(JSON.parse(answer), null, 1);
    return short.length < 4_000
      ? short.replace(/\[\s+((?:-?[\d.eE+-]+,?\s*)+)\]/g, (_, list: string) => `[${list.replace(/\s+/g, " ").trim()}]`)
      : answer;
  } catch {
    return answer;
  }
}

function Code({ endpoint }: { endpoint: EndpointView }) {
  const main = mainVersion(endpoint);
  const { code } = text.endpoints;
  if (endpoint.http_url === null) return <Panel title={code.title}>{code.noAddress}</Panel>;
  const calls = callsOf({
    name: endpoint.name,
    httpUrl: endpoint.http_url,
    grpcAddress: endpoint.grpc_address,
    inputs: inputsOf(main?.metadata ?? {}),
    raw: main?.runner === "redhare",
  });
  const languages = Object.entries(calls) as [Language, string][];
  return (
    <Panel title={code.title}>
      <Tabs defaultValue="curl">
        <Tabs.List mb="sm">
          {languages.map(([language]) => (
            <Tabs.Tab key={language} value={language}>
              {language}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {languages.map(([language, call]) => (
          <Tabs.Panel key={language} value={language}>
            <Snippet code={call} label={language} />
          </Tabs.Panel>
        ))}
      </Tabs>
      <Text c="dimmed" size="xs" my="sm">
        {code.hint}
      </Text>
      <Snippet code={`${code.token} ${endpoint.name}`} label={code.hint} />
    </Panel>
  );
}
