import { Button, Collapse, FileInput, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { call } from "../../api/client";
import type { Refused } from "../../api/problem";
import { useGet } from "../../api/queries";
import { send } from "../../api/send";
import { Dialog } from "../../components/Dialog";
import { Answer, Problem } from "../../components/Notice";
import { counted, percent } from "../../format/format";
import { text } from "../../text";
import { sizesOf } from "../submit/virtual_workers";
import { type Model, refetchModels, type Training, useModels, useTrainings } from "./lists";
import { Buttons } from "./ModelDialog";
import { NumberFields, ParameterFields, PlaceFields, WorkerFields } from "./ModelFields";
import { changesOf, formOf, type ModelForm, type Tables } from "./model_form";
import classes from "./models.module.css";
import { pageOf } from "./TrainingsTable";
import { useFocusWrong, wrongOf } from "./wrong";

const words = text.models.trainDialog;

interface Props {
  /** Its name; another one can be chosen if it is empty. */
  model: string;
  onClose: () => void;
  /** Numbers that the form begins with, instead of the model's. */
  numbers?: Readonly<Record<string, string>>;
}

/** Starts a training of a model. */
export function TrainDialog({ model, onClose, numbers }: Props) {
  const models = useModels();
  const tables = useGet("/v1/hyperparameters", {});
  const [name, setName] = useState(model);
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{words.title(name)}</span>} size={640}>
      <Answer query={models} rows={5}>
        {(all) => {
          const chosen = all.find((one) => one.name === name);
          return (
            <Stack gap="lg">
              {model === "" && (
                <Select
                  label={words.choose}
                  data={all.map((one) => one.name)}
                  value={name || null}
                  onChange={(value) => setName(value ?? "")}
                  searchable
                />
              )}
              {chosen !== undefined && (
                <Answer query={tables} rows={4}>
                  {(found) => (
                    <Form key={name} model={chosen} tables={found} numbers={numbers ?? {}} onClose={onClose} />
                  )}
                </Answer>
              )}
            </Stack>
          );
        }}
      </Answer>
    </Dialog>
  );
}

const OWN_FIELDS =
  /^(name|weights|max_workers|slots_per_worker|queue|priority|environment|histograms_every|(hyperparameters|parameters)\..+)$/;
const FRESH = "";
const FILE = "file";

interface FormProps {
  model: Model;
  tables: Tables;
  numbers: Readonly<Record<string, string>>;
  onClose: () => void;
}

function Form({ model, tables, numbers, onClose }: FormProps) {
  const [form, setForm] = useState<ModelForm>(() => {
    const first = formOf(model);
    return { ...first, numbers: { ...first.numbers, ...numbers } };
  });
  const [name, setName] = useState("");
  const [weights, setWeights] = useState(FRESH);
  const [file, setFile] = useState<File | null>(null);
  const [more, { toggle }] = useDisclosure(Object.keys(numbers).length > 0);
  const [sent, setSent] = useState<number | null>(null);
  const navigate = useNavigate();
  const start = useMutation<Training, Refused, void>({
    mutationFn: () => {
      const changes = changesOf(form, model, tables);
      const body = { ...changes, ...(name.trim() !== "" && { name: name.trim() }), ...sourceOf(weights) };
      const path = `/v1/models/${encodeURIComponent(model.name)}/trainings`;
      if (weights !== FILE || file === null) {
        return call("post", "/v1/models/{name}/trainings", { params: { path: { name: model.name } }, body });
      }
      const parts = new FormData();
      parts.append("training", JSON.stringify(body));
      parts.append("weights", file, "weights.pt");
      return send<Training>({ method: "POST", path, body: parts, onProgress: (done, all) => setSent(done / all) });
    },
    onSettled: () => setSent(null),
    onSuccess: (made) => {
      refetchModels();
      onClose();
      navigate(pageOf(made));
    },
  });
  const { wrong, rest } = wrongOf(start.error, OWN_FIELDS);
  const ref = useFocusWrong(start.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    start.mutate();
  };
  const change = { form, change: setForm, wrong };
  return (
    <form ref={ref} onSubmit={submit} noValidate>
      <Stack gap="lg">
        <div className={classes.fields}>
          <WorkerFields {...change} first />
          <WeightsField model={model.name} value={weights} onChange={setWeights} error={wrong("weights")} />
          {weights === FILE && (
            <FileInput
              size="xs"
              label={words.fileLabel}
              description={words.fileHint}
              value={file}
              onChange={setFile}
              clearable
            />
          )}
          <TextInput
            label={text.models.trainDialog.name}
            description={words.nameHint}
            maxLength={50}
            spellCheck={false}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={wrong("name")}
          />
        </div>
        {form.engine === "elastic" && <Efficiency form={form} />}
        <PlaceFields {...change} withoutWorkers />
        <div>
          <Button
            variant="subtle"
            color="gray"
            onClick={toggle}
            aria-expanded={more}
            leftSection={more ? <IconChevronDown size={16} /> : <IconChevronRight size={16} />}
          >
            {words.more}
          </Button>
          <Collapse expanded={more} mx={-4} px={4}>
            <Stack gap="lg" pt="sm">
              <ParameterFields {...change} declared={model.template_parameters} />
              <NumberFields {...change} tables={tables} />
            </Stack>
          </Collapse>
        </div>
        {rest !== null && <Problem error={rest} />}
        {sent !== null && (
          <Text role="status" c="dimmed">
            {text.models.template.upload(percent(sent))}
          </Text>
        )}
        <Buttons
          onClose={onClose}
          action={words.start}
          pending={start.isPending}
          disabled={weights === FILE && file === null}
        />
      </Stack>
    </form>
  );
}

/** What of `weights` a training is asked with: `MODEL/TRAINING`, as the option's value says it. */
function sourceOf(weights: string): { weights?: { model: string; training: string } } {
  if (weights === FRESH || weights === FILE) return {};
  const [model = "", training = ""] = weights.split("/");
  return { weights: { model, training } };
}

interface WeightsProps {
  model: string;
  value: string;
  onChange: (value: string) => void;
  error: string | null;
}

/** Weights to begin with: none, those of an earlier training (this model's first), or a file. */
function WeightsField({ model, value, onChange, error }: WeightsProps) {
  const trainings = useTrainings(null);
  const kept = (trainings.data ?? []).filter((one) => one.has_weights);
  const option = (one: Training) => ({ value: `${one.model}/${one.name}`, label: `${one.model} › ${one.name}` });
  const own = kept.filter((one) => one.model === model).map(option);
  const others = kept.filter((one) => one.model !== model).map(option);
  return (
    <Select
      label={words.weights}
      data={[
        { value: FRESH, label: words.fresh },
        { value: FILE, label: words.file },
        ...(own.length > 0 ? [{ group: model, items: own }] : []),
        ...(others.length > 0 ? [{ group: words.others, items: others }] : []),
      ]}
      value={value}
      onChange={(next) => onChange(next ?? FRESH)}
      allowDeselect={false}
      searchable
      error={error}
    />
  );
}

/** How evenly the parts of a batch divide over 1 to the most workers. */
function Efficiency({ form }: { form: ModelForm }) {
  const most = form.maxWorkers;
  const init = { params: { path: { name: form.template } } };
  const template = useGet("/v1/templates/{name}", init, { retry: false });
  if (template.data === undefined || !Number.isInteger(most) || most < 3 || most > 64) return null;
  const batch = Number(form.numbers.batch_size ?? "") || most;
  const sizes = sizesOf(template.data.elastic_script === "" ? Math.min(most, batch) : most, most);
  const full = sizes.filter((size) => size.efficiency === 1).map((size) => size.workers);
  const least = sizes.reduce((worst, size) => (size.efficiency < worst.efficiency ? size : worst));
  return (
    <div>
      <Text size="sm" c="dimmed" mb={4}>
        {words.full(full.join(", "))} {words.least(least.workers, percent(least.efficiency))}
      </Text>
      {most <= 24 && (
        <ul className={classes.sizes} aria-label={words.efficiency}>
          {sizes.map((size) => (
            <li key={size.workers} title={`${size.workers}: ${percent(size.efficiency)}`}>
              <i style={{ height: 32 * size.efficiency, opacity: size.efficiency === 1 ? 1 : 0.5 }} />
              {size.workers}
              <span className="unseen">: {percent(size.efficiency)}</span>
            </li>
          ))}
        </ul>
      )}
      <Group mt={4}>
        <Text size="sm" c="dimmed">
          {words.total(counted(most * form.slotsPerWorker, "slot"))}
        </Text>
      </Group>
    </div>
  );
}
