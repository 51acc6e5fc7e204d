import { Stack } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { useChange, useGet } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { FormActions } from "../../components/FormActions";
import { Problem } from "../../components/Notice";
import { Stale } from "../../components/Stale";
import { text } from "../../text";
import type { QueueView } from "./bar";
import { QueueForm } from "./QueueForm";
import { QueuePreview } from "./QueuePreview";
import { differencesOf, fieldsOf, patchOf, requestOf } from "./queue_fields";

const words = text.queues;

interface Props {
  /** The queue to change; none: a new one. */
  queue?: QueueView;
  /** The group of a new one. */
  group?: string;
  onClose: () => void;
}

/** Makes a queue, or changes one: with what would come of it before it is done. */
export function QueueDialog({ queue, group, onClose }: Props) {
  return (
    <Dialog
      opened
      onClose={onClose}
      size={640}
      title={
        <span className="wrap">{queue === undefined ? words.newQueueTitle : words.editTitle(queue.queue.name)}</span>
      }
    >
      {queue === undefined ? <New group={group} onClose={onClose} /> : <Edit queue={queue} onClose={onClose} />}
    </Dialog>
  );
}

function New({ group, onClose }: { group: string | undefined; onClose: () => void }) {
  const navigate = useNavigate();
  const [fields, setFields] = useState(fieldsOf(undefined, group));
  const add = useChange("post", "/v1/queues", {
    onSuccess: (made) => navigate(`/queues/${encodeURIComponent(made.queue.name)}`),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate({ body: requestOf(fields) });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <QueueForm fields={fields} change={setFields} problemOf={(field) => add.error?.of(field) ?? null} isNew />
        {add.error !== null && <Problem error={add.error} />}
        <FormActions verb={words.create} pending={add.isPending} onClose={onClose} />
      </Stack>
    </form>
  );
}

function Edit({ queue, onClose }: { queue: QueueView; onClose: () => void }) {
  const [base, setBase] = useState(queue);
  const [fields, setFields] = useState(fieldsOf(queue.queue));
  const params = { path: { name: queue.queue.name } };
  const latest = useGet("/v1/queues/{name}", { params });
  const edit = useChange("patch", "/v1/queues/{name}", {
    onSuccess: onClose,
    onError: (error) => {
      if (error.status === 412) void latest.refetch();
    },
  });
  const patch = patchOf(base.queue, fields);
  const send = (from: QueueView) => {
    setBase(from);
    edit.mutate({
      params: { ...params, header: { "if-match": `"${from.revision}"` } },
      body: patchOf(from.queue, fields),
    });
  };
  const theirs = edit.error?.status === 412 && latest.data?.revision !== base.revision ? latest.data : undefined;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send(base);
      }}
    >
      <Stack gap="md">
        <QueueForm fields={fields} change={setFields} problemOf={(field) => edit.error?.of(field) ?? null} />
        <QueuePreview name={queue.queue.name} patch={patch} />
        {theirs !== undefined ? (
          <Stale
            differences={differencesOf(theirs.queue, fields)}
            onTheirs={() => {
              setBase(theirs);
              setFields(fieldsOf(theirs.queue));
              edit.reset();
            }}
            onMine={() => send(theirs)}
          />
        ) : (
          edit.error !== null && edit.error.status !== 412 && <Problem error={edit.error} />
        )}
        <FormActions
          verb={text.apply}
          pending={edit.isPending}
          disabled={Object.keys(patch).length === 0}
          onClose={onClose}
        />
      </Stack>
    </form>
  );
}
