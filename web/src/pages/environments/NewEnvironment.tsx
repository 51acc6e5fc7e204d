import { Button, FileButton, Group, SegmentedControl, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { ENVIRONMENT } from "../../api/constraints";
import { useChange } from "../../api/queries";
import { violation } from "../../api/violation";
import { useCanChange } from "../../app/Connection";
import { Crumbs } from "../../components/Crumbs";
import { Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { SharingField } from "../../components/Sharing";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import classes from "./Environments.module.css";

const words = text.environments;
type Kind = "requirements" | "venv" | "conda";
const KINDS: readonly Kind[] = ["requirements", "venv", "conda"];
const MAX_CHARACTERS = 256 * 1024;

export default function NewEnvironment() {
  const address = useAddress();
  const canChange = useCanChange();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [sources, setSources] = useState<Readonly<Record<Kind, string>>>({ requirements: "", venv: "", conda: "" });
  const [sharedWith, setSharedWith] = useState<string[]>([]);
  const [attempted, setAttempted] = useState(false);
  const kind = KINDS.find((one) => one === address.get("kind")) ?? "requirements";
  const add = useChange("post", "/v1/environments", {
    onSuccess: (made) => navigate(`/environments/${encodeURIComponent(made.name)}`),
  });
  const source = sources[kind];
  const nameProblem = violation(ENVIRONMENT.name, name.trim(), words.nameForm);
  const sourceProblem = source.trim() === "" ? text.violation.required : violation(ENVIRONMENT[kind], source);
  const errorOf = (field: string, problem: string | null, typed: string) =>
    add.error?.of(field) ?? (attempted || typed !== "" ? problem : null);
  const create = (event: FormEvent) => {
    event.preventDefault();
    setAttempted(true);
    if (nameProblem !== null || sourceProblem !== null || !canChange) return;
    const body = {
      name: name.trim(),
      shared_with: sharedWith,
      [kind]: kind === "requirements" ? source : source.trim(),
    };
    add.mutate({ body });
  };
  const type = (typed: string) => {
    add.reset();
    setSources((before) => ({ ...before, [kind]: typed }));
  };
  return (
    <Page
      title={words.newTitle}
      heading={<Crumbs above={[{ to: "/environments", title: words.title }]} name={words.newTitle} />}
    >
      <form className={classes.form} noValidate onSubmit={create}>
        <Panel title={words.fields.kind}>
          <Stack gap="sm">
            <SegmentedControl
              aria-label={words.fields.kind}
              data={KINDS.map((value) => ({ value, label: words.kinds[value] ?? value }))}
              value={kind}
              onChange={(next) => address.set({ kind: next === "requirements" ? null : next })}
            />
            <Text size="sm" c="dimmed">
              {words.kindHints[kind]}
            </Text>
            <TextInput
              label={words.fields.name}
              spellCheck={false}
              autoComplete="off"
              value={name}
              error={errorOf("name", nameProblem, name)}
              onChange={(event) => {
                add.reset();
                setName(event.currentTarget.value);
              }}
            />
            {kind === "requirements" ? (
              <Requirements value={source} onChange={type} error={errorOf(kind, sourceProblem, source)} />
            ) : (
              <TextInput
                label={words.fields[kind]}
                spellCheck={false}
                autoComplete="off"
                value={source}
                error={errorOf(kind, sourceProblem, source)}
                onChange={(event) => type(event.currentTarget.value)}
              />
            )}
          </Stack>
        </Panel>
        <Panel title={text.sharing.title}>
          <SharingField value={sharedWith} onChange={setSharedWith} error={add.error?.of("shared_with")} />
        </Panel>
        {add.error !== null && <Problem error={add.error} />}
        <Group>
          <Button type="submit" size="sm" loading={add.isPending} disabled={!canChange}>
            {words.create}
          </Button>
        </Group>
      </form>
    </Page>
  );
}

interface RequirementsProps {
  value: string;
  onChange: (text: string) => void;
  error: string | null;
}

function Requirements({ value, onChange, error }: RequirementsProps) {
  const [tooLong, setTooLong] = useState(false);
  const read = async (file: File | null) => {
    setTooLong(file !== null && file.size > MAX_CHARACTERS);
    if (file !== null && file.size <= MAX_CHARACTERS) onChange(await file.text());
  };
  return (
    <>
      <Textarea
        label={words.fields.requirements}
        description={words.requirementsHint}
        placeholder={"transformers==4.57.0\ndatasets"}
        autosize
        minRows={6}
        maxRows={20}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={value}
        error={tooLong ? words.tooLong : error}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <Group>
        <FileButton
          accept=".txt,.in,text/plain"
          onChange={(file) => void read(file)}
          inputProps={{ "aria-label": words.file }}
        >
          {(props) => (
            <Button variant="default" {...props}>
              {words.file}
            </Button>
          )}
        </FileButton>
      </Group>
    </>
  );
}
