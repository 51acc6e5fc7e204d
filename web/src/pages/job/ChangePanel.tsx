import { Alert, Button, Group, NumberInput, Select, Stack, Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Schemas } from "../../api/client";
import { useEvents } from "../../api/live";
import { useGet } from "../../api/queries";
import { useRevised } from "../../api/useRevised";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { count } from "../../format/format";
import { text } from "../../text";
import { PriorityField } from "../jobs/Bulk";
import type { Job } from "./facts";
import { type Form, formOf, type Patch, patchOf } from "./form";
import classes from "./Job.module.css";
import { PreviewTable } from "./PreviewTable";

const words = text.job.change;
const PREVIEW_AFTER_MS = 150;

/** Changes a job while it waits or runs; shows who would get what before it is applied. */
export function ChangePanel({ job }: { job: Job }) {
  const [edited, setEdited] = useState<{ base: Job; form: Form } | null>(null);
  const base = edited?.base ?? job;
  const form = edited?.form ?? formOf(job);
  const patch = patchOf(base, form);
  const isEdited = Object.keys(patch).length > 0;
  const canChange = useCanChange();
  const path = { job_id: job.id };
  const change = useRevised({
    read: async () => (await call("get", "/v1/jobs/{job_id}", { params: { path } })).job,
    write: (header, body: Patch) => call("patch", "/v1/jobs/{job_id}", { params: { path, header }, body }),
    said: formOf,
    onSuccess: () => setEdited(null),
  });
  const preview = usePreview(job.id, patch);
  const edit = (values: Partial<Form>) => {
    if (change.isError || change.isSuccess) change.reset();
    setEdited({ base, form: { ...form, ...values } });
  };
  const apply = (shown: Job) => change.mutate({ shown, body: patch });
  const errorOf = (field: string) => change.error?.of(field) ?? problemOf(preview.data, field);
  const isStale = change.error?.status === 412;
  const isNamed = ["priority", "min_tasks", "max_tasks", "queue", "tags"].some(
    (field) => change.error?.of(field) != null,
  );
  return (
    <Panel title={words.title}>
      <form
        className={classes.form}
        onSubmit={(event) => {
          event.preventDefault();
          apply(base);
        }}
      >
        <Fields form={form} edit={edit} errorOf={errorOf} isFixed={job.spec.fixed ?? false} />
        {isStale && (
          <Stale base={base} job={job} form={form} onTheirs={() => setEdited(null)} onMine={() => apply(job)} />
        )}
        {change.error !== null && !isStale && !isNamed && <Problem error={change.error} />}
        {isEdited && (
          <PreviewTable
            preview={preview.data}
            error={preview.error}
            own={job.id}
            isFresh={!preview.isPlaceholderData}
          />
        )}
        <Group gap="xs" justify="flex-end">
          {change.isSuccess && !isEdited && <span role="status">{words.applied}</span>}
          {isEdited && (
            <Button variant="default" onClick={() => setEdited(null)}>
              {words.reset}
            </Button>
          )}
          <Button type="submit" disabled={!isEdited || !canChange} loading={change.isPending}>
            {words.apply}
          </Button>
        </Group>
      </form>
    </Panel>
  );
}

/** What a change would come to, asked for a moment after the last keystroke, and again when something is decided. */
function usePreview(id: string, patch: Patch) {
  const [asked] = useDebouncedValue(JSON.stringify(patch), PREVIEW_AFTER_MS);
  const preview = useQuery({
    queryKey: ["preview", id, asked],
    queryFn: ({ signal }) =>
      call(
        "post",
        "/v1/jobs/{job_id}/preview",
        { params: { path: { job_id: id } }, body: JSON.parse(asked) as Patch },
        signal,
      ),
    enabled: asked !== "{}",
    placeholderData: keepPreviousData,
    gcTime: 0,
    retry: false,
  });
  useEvents((events) => {
    if (asked !== "{}" && events.some((event) => event.kind === "decision")) void preview.refetch();
  });
  return preview;
}

function problemOf(preview: Schemas["SharePreview"] | undefined, field: string): string | null {
  return preview?.problems.find((problem) => problem.field === field)?.message ?? null;
}

interface FieldsProps {
  form: Form;
  edit: (values: Partial<Form>) => void;
  errorOf: (field: string) => string | null;
  isFixed: boolean;
}

function Fields({ form, edit, errorOf, isFixed }: FieldsProps) {
  const queues = useGet("/v1/queues", {}, { enabled: useMay("pool:read") });
  const names = queues.data?.queues.map((view) => view.queue.name) ?? [];
  return (
    <>
      <PriorityField value={form.priority} error={errorOf("priority")} onChange={(priority) => edit({ priority })} />
      {!isFixed && (
        <div className={classes.two}>
          <NumberInput
            label={words.min}
            min={1}
            max={4096}
            allowDecimal={false}
            value={form.min_tasks}
            error={errorOf("min_tasks")}
            onChange={(value) => typeof value === "number" && edit({ min_tasks: value })}
          />
          <NumberInput
            label={words.max}
            min={1}
            max={4096}
            allowDecimal={false}
            value={form.max_tasks}
            error={errorOf("max_tasks")}
            onChange={(value) => typeof value === "number" && edit({ max_tasks: value })}
          />
        </div>
      )}
      <Select
        label={words.queue}
        data={[...new Set([...names, form.queue])]}
        value={form.queue}
        allowDeselect={false}
        searchable
        error={errorOf("queue")}
        onChange={(queue) => queue !== null && edit({ queue })}
      />
      <Textarea
        label={words.tags}
        placeholder={words.tagsHint}
        autosize
        minRows={1}
        maxRows={6}
        maxLength={4000}
        value={form.tags}
        error={errorOf("tags")}
        onChange={(event) => edit({ tags: event.currentTarget.value })}
      />
    </>
  );
}

interface StaleProps {
  base: Job;
  job: Job;
  form: Form;
  onTheirs: () => void;
  onMine: () => void;
}

/** Somebody else has changed it meanwhile: both, side by side. */
function Stale({ base, job, form, onTheirs, onMine }: StaleProps) {
  const [before, now] = [formOf(base), formOf(job)];
  const labels: Record<keyof Form, string> = {
    priority: text.jobs.columns.priority ?? "",
    min_tasks: words.min,
    max_tasks: words.max,
    queue: words.queue,
    tags: words.tags,
  };
  const shown = (Object.keys(labels) as (keyof Form)[]).filter(
    (field) => now[field] !== before[field] || form[field] !== before[field],
  );
  const write = (value: string | number) => (typeof value === "number" ? count(value) : value);
  return (
    <Alert color="blue" variant="outline" title={words.staleTitle} role="alert">
      <Stack gap="sm">
        <span>{words.stale}</span>
        <table className={classes.preview}>
          <thead>
            <tr>
              <td />
              <th scope="col">{words.theirs}</th>
              <th scope="col">{words.mine}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((field) => (
              <tr key={field}>
                <th scope="row">{labels[field]}</th>
                <td className="wrap">{write(now[field])}</td>
                <td className="wrap">{write(form[field])}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <Group gap="xs">
          <Button variant="default" onClick={onTheirs}>
            {words.takeTheirs}
          </Button>
          <Button variant="default" onClick={onMine}>
            {words.applyMine}
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
