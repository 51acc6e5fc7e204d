import {
  Autocomplete,
  Input,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  TextInput,
} from "@mantine/core";
import { useId } from "react";
import { useGet } from "../../api/queries";
import { text } from "../../text";
import type { Queue, QueueFields } from "./queue_fields";

const words = text.queues;
const POLICIES: readonly Queue["policy"][] = ["fairshare", "priority", "fifo"];

interface Props {
  fields: QueueFields;
  change: (fields: QueueFields) => void;
  /** What is wrong with a field, in the server's words. */
  problemOf: (field: string) => string | null;
  /** Its name can still be chosen. */
  isNew?: boolean;
}

/** What people say of a queue. */
export function QueueForm({ fields, change, problemOf, isNew = false }: Props) {
  const groups = useGet("/v1/resource-groups", {});
  const environments = useGet("/v1/environments", {});
  const set = (some: Partial<QueueFields>) => change({ ...fields, ...some });
  const field = (name: keyof QueueFields) => ({ label: words.fields[name], error: problemOf(name) });
  const description = (
    <TextInput
      {...field("description")}
      maxLength={500}
      value={fields.description}
      onChange={(event) => set({ description: event.currentTarget.value })}
    />
  );
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
        {isNew && (
          <TextInput
            {...field("name")}
            description={words.hints.name}
            required
            data-autofocus
            maxLength={60}
            value={fields.name}
            onChange={(event) => set({ name: event.currentTarget.value })}
          />
        )}
        <Select
          {...field("resource_group")}
          data={groups.data?.groups.map((group) => group.group.name) ?? [fields.resource_group]}
          value={fields.resource_group}
          allowDeselect={false}
          searchable
          onChange={(value) => value !== null && set({ resource_group: value })}
        />
        <NumberInput
          {...field("weight")}
          description={words.hints.weight}
          min={1}
          max={10_000}
          allowDecimal={false}
          data-autofocus={!isNew || undefined}
          value={fields.weight}
          onChange={(value) => set({ weight: asNumber(value) })}
        />
        <Policy fields={fields} set={set} />
        <NumberInput
          {...field("max_tasks_per_job")}
          description={words.hints.max_tasks_per_job}
          min={1}
          max={4096}
          allowDecimal={false}
          value={fields.max_tasks_per_job}
          onChange={(value) => set({ max_tasks_per_job: asNumber(value) })}
        />
        <Autocomplete
          size="xs"
          {...field("default_environment")}
          description={words.hints.default_environment}
          data={environments.data?.environments.map((one) => one.name) ?? []}
          value={fields.default_environment}
          onChange={(value) => set({ default_environment: value })}
        />
        <TextInput
          {...field("run_as")}
          description={words.hints.run_as}
          maxLength={32}
          value={fields.run_as}
          onChange={(event) => set({ run_as: event.currentTarget.value })}
        />
        {isNew && description}
      </SimpleGrid>
      {!isNew && description}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
        <Switch
          label={words.fields.preemption}
          description={words.hints.preemption}
          checked={fields.preemption}
          onChange={(event) => set({ preemption: event.currentTarget.checked })}
        />
        <Switch
          label={words.fields.open}
          description={words.hints.open}
          checked={fields.open}
          onChange={(event) => set({ open: event.currentTarget.checked })}
        />
      </SimpleGrid>
    </Stack>
  );
}

function asNumber(value: number | string): number | "" {
  return typeof value === "number" ? value : "";
}

function Policy({ fields, set }: { fields: QueueFields; set: (some: Partial<QueueFields>) => void }) {
  const id = useId();
  return (
    <div>
      <Input.Label id={id} size="xs" labelElement="div" display="block" mb={4}>
        {words.fields.policy}
      </Input.Label>
      <SegmentedControl
        aria-labelledby={id}
        data={POLICIES.map((policy) => ({ value: policy, label: words.policies[policy] ?? policy }))}
        value={fields.policy}
        onChange={(policy) => set({ policy: policy as Queue["policy"] })}
      />
      <Text size="xs" c="dimmed" mt={5}>
        {words.policyHints[fields.policy]}
      </Text>
    </div>
  );
}
