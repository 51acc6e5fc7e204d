import { Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import type { Schemas } from "../../api/client";
import { usePreview } from "../../api/queries";
import { count, time } from "../../format/format";
import { text } from "../../text";
import classes from "./queues.module.css";

const words = text.queues.preview;
const REST_MS = 200;
const MOST = 8;

/** What would come of a change of a queue if it was made now: what every queue would deserve, and whose jobs change. */
export function QueuePreview({ name, patch }: { name: string; patch: Schemas["QueuePatch"] }) {
  const [rested] = useDebouncedValue(JSON.stringify(patch), REST_MS);
  const body = JSON.parse(rested) as Schemas["QueuePatch"];
  const asked = Object.keys(body).length > 0 && Object.keys(patch).length > 0;
  const preview = usePreview("/v1/queues/{name}/preview", { params: { path: { name } }, body }, { enabled: asked });
  if (!asked || preview.data === undefined) return null;
  return (
    <section className={classes.previewBox} aria-label={words.title} aria-live="polite">
      <Stack gap="xs">
        <Text size="sm" fw={600}>
          {words.title}
        </Text>
        <Shown preview={preview.data} />
      </Stack>
    </section>
  );
}

function Shown({ preview }: { preview: Schemas["SharePreview"] }) {
  const problems = [...preview.problems.map((problem) => problem.message), preview.refused].filter((one) => one !== "");
  if (problems.length > 0) {
    return (
      <>
        {[...new Set(problems)].map((problem) => (
          <Text key={problem} size="sm" c="var(--mantine-color-error)" className="wrap">
            {problem}
          </Text>
        ))}
      </>
    );
  }
  const changed = preview.workloads.filter((one) => one.would_get !== one.target);
  return (
    <>
      {preview.queues.length === 0 ? (
        <Text size="sm" c="dimmed">
          {words.nothing}
        </Text>
      ) : (
        <Changes
          head={[words.queue, words.deserves, words.would]}
          rows={preview.queues.map((one) => [one.name, one.num_deserved, one.would_deserve])}
        />
      )}
      {changed.length > 0 && (
        <Changes
          head={[words.job, words.holds, words.would]}
          rows={changed.slice(0, MOST).map((one) => [`${one.id} ${one.name}`, one.held, one.would_get])}
        />
      )}
      {preview.others.target !== preview.others.would_get && (
        <Changes
          head={[words.others, words.holds, words.would]}
          rows={[[words.others, preview.others.held, preview.others.would_get]]}
        />
      )}
      {preview.notes.map((note) => (
        <Text key={note} size="sm" className="wrap">
          {note}
        </Text>
      ))}
      <Text size="xs" c="dimmed">
        {words.at(time(preview.at))}
      </Text>
    </>
  );
}

type Row = readonly [name: string, before: number, after: number];

function Changes({ head, rows }: { head: readonly [string, string, string]; rows: readonly Row[] }) {
  return (
    <table className={classes.preview}>
      <thead>
        <tr>
          {head.map((word) => (
            <th key={word} scope="col">
              {word}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, before, after]) => (
          <tr key={name} data-changed={before !== after || undefined}>
            <th scope="row" className="wrap">
              {name}
            </th>
            <td>{count(before)}</td>
            <td>{count(after)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
