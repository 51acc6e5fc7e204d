import {
  Alert,
  Autocomplete,
  Button,
  Checkbox,
  Group,
  Select,
  Stack,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { call } from "../../api/client";
import type { Refused } from "../../api/problem";
import { send } from "../../api/send";
import { Dialog } from "../../components/Dialog";
import { DropFiles } from "../../components/DropFiles";
import { Problem } from "../../components/Notice";
import { type Chosen, scriptsOf } from "../../files/chosen";
import { tarGzOf } from "../../files/tar";
import { percent } from "../../format/format";
import { text } from "../../text";
import { refetchModels, type Template } from "./lists";
import { Buttons, showThis } from "./ModelDialog";
import classes from "./models.module.css";
import {
  EMPTY,
  ENGINES,
  isNumber,
  KINDS,
  NEW_PARAMETER,
  type ParameterFields,
  type TemplateForm,
  templateFormOf,
  templateRequestOf,
  withFolder,
} from "./template_form";
import { useFocusWrong, wrongOf } from "./wrong";

const words = text.models.template;
const FRAMEWORKS = ["PyTorch", "Keras", "Lightning", "Transformers"];
const OWN_FIELDS = /^(name|framework|main_file|elastic_file|description|engines|shared_with|code)$/;

interface Props {
  onClose: () => void;
  /** The one to replace; another one is added without. */
  template?: Template;
}

/** Adds a template from a folder of code, or replaces one. */
export function TemplateDialog({ onClose, template }: Props) {
  const title = template === undefined ? words.titleAdd : words.titleReplace(template.name);
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{title}</span>} size={760}>
      <Form onClose={onClose} template={template} />
    </Dialog>
  );
}

function Form({ onClose, template }: { onClose: () => void; template: Template | undefined }) {
  const [form, setForm] = useState(() => (template === undefined ? EMPTY : templateFormOf(template)));
  const [folder, setFolder] = useState<Chosen | null>(null);
  const [sent, setSent] = useState<number | null>(null);
  const [newer, setNewer] = useState<number | null>(null);
  const navigate = useNavigate();
  const save = useMutation<Template, Refused, void>({
    mutationFn: async () => {
      const parts = new FormData();
      parts.append("template", JSON.stringify(templateRequestOf(form)));
      if (folder !== null) parts.append("code", await tarGzOf(folder.files), "code.tar.gz");
      const onProgress = (done: number, all: number) => setSent(done / all);
      if (template === undefined)
        return send<Template>({ method: "POST", path: "/v1/templates", body: parts, onProgress });
      const path = `/v1/templates/${encodeURIComponent(template.name)}`;
      const headers = { "If-Match": `"${newer ?? template.revision}"` };
      return send<Template>({ method: "PUT", path, body: parts, headers, onProgress });
    },
    onSettled: () => setSent(null),
    onError: (error) => {
      if (error.status !== 412 || template === undefined) return;
      void call("get", "/v1/templates/{name}", { params: { path: { name: template.name } } }).then((now) =>
        setNewer(now.revision),
      );
    },
    onSuccess: (made) => {
      refetchModels();
      onClose();
      navigate(`/models/templates/${encodeURIComponent(made.name)}`);
    },
  });
  const { wrong, rest } = wrongOf(save.error?.status === 412 ? null : save.error, OWN_FIELDS);
  const ref = useFocusWrong(save.error);
  const take = (chosen: Chosen) => {
    setFolder(chosen);
    void withFolder(form, chosen).then((read) =>
      setForm(template === undefined ? read : { ...read, name: template.name }),
    );
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <form ref={ref} onSubmit={submit} noValidate>
      <Stack gap="lg">
        <DropFiles
          label={words.folder}
          hint={template === undefined ? words.folderHint : words.keepFolder}
          ignoring
          chosen={folder}
          onChoose={(chosen) => chosen !== null && take(chosen)}
          error={wrong("code")}
        />
        <Fields form={form} change={setForm} wrong={wrong} folder={folder} named={template !== undefined} />
        <Parameters parameters={form.parameters} change={(parameters) => setForm({ ...form, parameters })} />
        {newer !== null && (
          <Alert ref={showThis} color="yellow" variant="outline" role="alert">
            {words.changed}
          </Alert>
        )}
        {rest !== null && <Problem error={rest} />}
        {sent !== null && (
          <Text role="status" c="dimmed">
            {words.upload(percent(sent))}
          </Text>
        )}
        <Buttons
          onClose={onClose}
          action={
            template === undefined
              ? text.models.form.add
              : newer === null
                ? text.models.form.save
                : text.models.form.overwrite
          }
          pending={save.isPending}
          disabled={template === undefined && folder === null}
        />
      </Stack>
    </form>
  );
}

interface FieldsProps {
  form: TemplateForm;
  change: (form: TemplateForm) => void;
  wrong: (field: string) => string | null;
  folder: Chosen | null;
  /** The name stands already. */
  named: boolean;
}

function Fields({ form, change, wrong, folder, named }: FieldsProps) {
  const scripts = folder === null ? [] : scriptsOf(folder);
  return (
    <div className={classes.fields}>
      <TextInput
        label={text.models.form.name}
        required
        maxLength={50}
        spellCheck={false}
        disabled={named}
        value={form.name}
        onChange={(event) => change({ ...form, name: event.currentTarget.value })}
        error={wrong("name")}
      />
      <Autocomplete
        size="xs"
        label={words.framework}
        data={FRAMEWORKS}
        maxLength={60}
        value={form.framework}
        onChange={(framework) => change({ ...form, framework })}
        error={wrong("framework")}
      />
      <Autocomplete
        size="xs"
        label={words.mainFile}
        data={scripts}
        maxLength={400}
        value={form.mainFile}
        onChange={(mainFile) => change({ ...form, mainFile })}
        error={wrong("main_file")}
      />
      <Autocomplete
        size="xs"
        label={words.elasticFile}
        description={words.elasticHint}
        data={scripts}
        maxLength={400}
        value={form.elasticFile}
        onChange={(elasticFile) => change({ ...form, elasticFile })}
        error={wrong("elastic_file")}
      />
      <Checkbox.Group
        className={classes.wide}
        size="xs"
        label={words.engines}
        value={[...form.engines]}
        onChange={(chosen) => change({ ...form, engines: ENGINES.filter((engine) => chosen.includes(engine)) })}
        error={wrong("engines")}
      >
        <Group gap="md" mt={6}>
          {ENGINES.map((engine) => (
            <Checkbox key={engine} size="xs" value={engine} label={text.models.engines[engine]} />
          ))}
        </Group>
      </Checkbox.Group>
      <Textarea
        className={classes.wide}
        label={words.description}
        autosize
        minRows={1}
        maxLength={4000}
        value={form.description}
        onChange={(event) => change({ ...form, description: event.currentTarget.value })}
        error={wrong("description")}
      />
      <TagsInput
        className={classes.wide}
        size="xs"
        label={text.models.form.shareLabel}
        description={text.models.form.shareHint}
        value={[...form.sharedWith]}
        onChange={(sharedWith) => change({ ...form, sharedWith })}
        error={wrong("shared_with")}
      />
    </div>
  );
}

interface ParametersProps {
  parameters: readonly ParameterFields[];
  change: (parameters: readonly ParameterFields[]) => void;
}

function Parameters({ parameters, change }: ParametersProps) {
  const set = (index: number, value: ParameterFields) =>
    change(parameters.map((one, place) => (place === index ? value : one)));
  return (
    <fieldset style={{ border: 0, margin: 0, padding: 0 }}>
      <legend style={{ fontWeight: 600, padding: 0 }}>{words.parameters}</legend>
      <Text size="sm" c="dimmed" mb="sm">
        {words.parametersHint}
      </Text>
      <Stack gap="sm">
        {parameters.map((parameter, index) => (
          <ParameterRow
            // biome-ignore lint/suspicious/noArrayIndexKey: a name may be there twice, or not yet
            key={index}
            parameter={parameter}
            change={(value) => set(index, value)}
            remove={() => change(parameters.filter((_, place) => place !== index))}
          />
        ))}
        <Button
          variant="default"
          leftSection={<IconPlus size={14} />}
          style={{ alignSelf: "flex-start" }}
          onClick={() => change([...parameters, NEW_PARAMETER])}
        >
          {words.addParameter}
        </Button>
      </Stack>
    </fieldset>
  );
}

interface RowProps {
  parameter: ParameterFields;
  change: (parameter: ParameterFields) => void;
  remove: () => void;
}

function ParameterRow({ parameter, change, remove }: RowProps) {
  const field = (name: Exclude<keyof ParameterFields, "kind">, label: string) => (
    <TextInput
      label={label}
      value={parameter[name]}
      onChange={(event) => change({ ...parameter, [name]: event.currentTarget.value })}
    />
  );
  return (
    <div className={classes.parameterRow}>
      {field("name", words.parameter.name)}
      <Select
        label={words.parameter.kind}
        data={KINDS.map((kind) => ({ value: kind, label: words.kinds[kind] ?? kind }))}
        value={parameter.kind}
        onChange={(value) => change({ ...parameter, kind: KINDS.find((kind) => kind === value) ?? "text" })}
        allowDeselect={false}
      />
      {field("default", words.parameter.default)}
      {isNumber(parameter.kind) && field("minimum", words.parameter.minimum)}
      {isNumber(parameter.kind) && field("maximum", words.parameter.maximum)}
      {parameter.kind === "choice" && field("choices", `${words.parameter.choices}, ${text.models.form.list}`)}
      <div className={classes.two}>{field("description", words.parameter.description)}</div>
      <Button
        variant="subtle"
        color="gray"
        leftSection={<IconTrash size={14} />}
        aria-label={words.removeParameter(parameter.name)}
        onClick={remove}
      >
        {text.models.remove}
      </Button>
    </div>
  );
}
