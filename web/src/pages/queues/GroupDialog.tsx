import { Input, SegmentedControl, Stack, TagsInput, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useId, useState } from "react";
import { useNavigate } from "react-router";
import type { Schemas } from "../../api/client";
import { useChange, useGet, usePreview } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { FormActions } from "../../components/FormActions";
import { Problem } from "../../components/Notice";
import { Stale } from "../../components/Stale";
import { counted } from "../../format/format";
import { text } from "../../text";
import type { GroupView } from "./bar";
import {
  fieldsOf,
  type GroupFields,
  hostsOf,
  isLabel,
  labelsOf,
  sayHosts,
  saySlots,
  slotsOf,
  whatIsMissing,
} from "./group_words";
import { Members } from "./Members";

const words = text.queues;
const REST_MS = 200;

type Set = (some: Partial<GroupFields>) => void;

/** Makes a resource group, or changes one. Its hosts are shown as one types. */
export function GroupDialog({ group, onClose }: { group?: GroupView; onClose: () => void }) {
  const navigate = useNavigate();
  const [base, setBase] = useState(group);
  const [fields, setFields] = useState(fieldsOf(group?.group));
  const add = useChange("post", "/v1/resource-groups", {
    onSuccess: (made) => navigate(`/queues/groups/${encodeURIComponent(made.group.name)}`),
  });
  const params = { path: { name: group?.group.name ?? "" } };
  const latest = useGet("/v1/resource-groups/{name}", { params }, { enabled: group !== undefined });
  const edit = useChange("patch", "/v1/resource-groups/{name}", {
    onSuccess: onClose,
    onError: (error) => {
      if (error.status === 412) void latest.refetch();
    },
  });
  const body = { hosts: hostsOf(fields), slots_per_host: slotsOf(fields), description: fields.description };
  const send = (from: GroupView | undefined) => {
    if (from === undefined) {
      add.mutate({ body: { ...body, name: fields.name.trim() } });
      return;
    }
    setBase(from);
    edit.mutate({ params: { ...params, header: { "if-match": `"${from.revision}"` } }, body });
  };
  const error = add.error ?? edit.error;
  const isStale = edit.error?.status === 412;
  const theirs = isStale && latest.data?.revision !== base?.revision ? latest.data : undefined;
  return (
    <Dialog
      opened
      onClose={onClose}
      size={720}
      title={
        <span className="wrap">{group === undefined ? words.newGroupTitle : words.editTitle(group.group.name)}</span>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send(base);
        }}
      >
        <Stack gap="md">
          {group === undefined && (
            <TextInput
              label={words.fields.name}
              description={words.hints.name}
              required
              data-autofocus
              maxLength={60}
              value={fields.name}
              error={error?.of("name")}
              onChange={(event) => setFields({ ...fields, name: event.currentTarget.value })}
            />
          )}
          <Which fields={fields} set={(some) => setFields({ ...fields, ...some })} />
          <TextInput
            label={words.fields.description}
            maxLength={500}
            value={fields.description}
            error={error?.of("description")}
            onChange={(event) => setFields({ ...fields, description: event.currentTarget.value })}
          />
          {theirs !== undefined ? (
            <Stale
              differences={differencesOf(theirs, fields)}
              onTheirs={() => {
                setBase(theirs);
                setFields(fieldsOf(theirs.group));
                edit.reset();
              }}
              onMine={() => send(theirs)}
            />
          ) : (
            error !== null && !isStale && <Problem error={error} />
          )}
          <FormActions
            verb={group === undefined ? words.create : text.apply}
            pending={add.isPending || edit.isPending}
            disabled={whatIsMissing(fields) !== null}
            onClose={onClose}
          />
        </Stack>
      </form>
    </Dialog>
  );
}

function differencesOf(theirs: GroupView, mine: GroupFields) {
  const wanted: Schemas["ResourceGroup"] = {
    ...theirs.group,
    slots_per_host: slotsOf(mine),
    hosts: hostsOf(mine),
    description: mine.description,
  };
  return [
    { label: words.slotsPerHost, theirs: saySlots(theirs.group), mine: saySlots(wanted) },
    { label: words.hostsLabel, theirs: sayHosts(theirs.group.hosts ?? {}), mine: sayHosts(wanted.hosts ?? {}) },
    { label: words.fields.description ?? "", theirs: theirs.group.description, mine: wanted.description },
  ].filter((difference) => difference.theirs !== difference.mine);
}

/** Which hosts, how many slots of each; and what that comes to now. */
function Which({ fields, set }: { fields: GroupFields; set: Set }) {
  const [rested] = useDebouncedValue(fields, REST_MS);
  const missing = whatIsMissing(rested);
  const preview = usePreview(
    "/v1/resource-groups/preview",
    { body: { hosts: hostsOf(rested), slots_per_host: slotsOf(rested) } },
    { enabled: missing === null },
  );
  const found = missing === null ? preview.data : undefined;
  const problemsOf = (field: string) =>
    found?.problems
      .filter((problem) => problem.field.startsWith(field))
      .map((problem) => problem.message)
      .join("; ") || null;
  return (
    <>
      <Choice
        label={words.slotsPerHost}
        data={words.slotsOf}
        value={fields.byFormula ? "formula" : "all"}
        onChange={(value) => set({ byFormula: value === "formula" })}
      />
      {fields.byFormula && (
        <TextInput
          label={words.formula}
          description={words.formulaHint}
          placeholder="ngpus"
          required
          maxLength={200}
          spellCheck={false}
          autoCapitalize="none"
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
          value={fields.formula}
          error={problemsOf("slots_per_host")}
          onChange={(event) => set({ formula: event.currentTarget.value })}
        />
      )}
      <HostsChoice fields={fields} set={set} problem={problemsOf("hosts")} />
      {found !== undefined && found.problems.length === 0 && (
        <Members hosts={found.hosts} aside={words.groupSlots(counted(found.num_slots, "slot"))} notes={found.notes} />
      )}
    </>
  );
}

function HostsChoice({ fields, set, problem }: { fields: GroupFields; set: Set; problem: string | null }) {
  const cluster = useGet("/v1/cluster", {});
  const nodes = cluster.data?.nodes ?? [];
  const known = [...new Set(nodes.flatMap((node) => labelsOf({ labels: node.labels ?? {} })))];
  const [wrong, setWrong] = useState<string | null>(null);
  return (
    <>
      <Choice
        label={words.hostsLabel}
        data={words.hosts}
        value={fields.hosts}
        onChange={(value) => set({ hosts: value as GroupFields["hosts"] })}
      />
      {fields.hosts === "names" && (
        <TagsInput
          size="xs"
          label={words.names}
          description={words.namesHint}
          data={nodes.map((node) => node.id)}
          value={[...fields.names]}
          error={problem}
          onChange={(names) => set({ names })}
        />
      )}
      {fields.hosts === "labels" && (
        <TagsInput
          size="xs"
          label={words.labels}
          description={words.labelsHint}
          data={known}
          value={[...fields.labels]}
          error={wrong ?? problem}
          maxTags={20}
          onChange={(labels) => {
            const bad = labels.find((label) => !isLabel(label));
            setWrong(bad === undefined ? null : words.labelWrong(bad));
            set({ labels: labels.filter(isLabel) });
          }}
        />
      )}
    </>
  );
}

interface ChoiceProps {
  label: string;
  data: Readonly<Record<string, string>>;
  value: string;
  onChange: (value: string) => void;
}

function Choice({ label, data, value, onChange }: ChoiceProps) {
  const id = useId();
  return (
    <div>
      <Input.Label id={id} size="xs" labelElement="div" display="block" mb={4}>
        {label}
      </Input.Label>
      <SegmentedControl
        aria-labelledby={id}
        data={Object.entries(data).map(([key, word]) => ({ value: key, label: word }))}
        value={value}
        onChange={onChange}
      />
    </div>
  );
}
