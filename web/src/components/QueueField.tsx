import { Select } from "@mantine/core";
import { useGet } from "../api/queries";

interface Props {
  label: string;
  description?: string;
  value: string;
  onChange: (queue: string) => void;
  disabled?: boolean;
  error: string | null;
}

/** One of the queues that there are. */
export function QueueField({ label, description, value, onChange, disabled = false, error }: Props) {
  const queues = useGet("/v1/queues", {});
  const names = queues.data?.queues.map(({ queue }) => queue.name) ?? [];
  return (
    <Select
      label={label}
      {...(description && { description })}
      searchable
      allowDeselect={false}
      data={[...new Set([value, ...names])]}
      value={value}
      disabled={disabled}
      error={error}
      onChange={(chosen) => onChange(chosen ?? value)}
    />
  );
}
