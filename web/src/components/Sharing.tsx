import { Button, Group, Stack, Switch, TagsInput, Text } from "@mantine/core";
import { useState } from "react";
import type { Refused } from "../api/problem";
import { useCanChange } from "../app/Connection";
import { text } from "../text";
import { Problem } from "./Notice";
import { Panel } from "./Panel";

const words = text.sharing;
const EVERYBODY = "*";

interface FieldProps {
  value: readonly string[];
  onChange: (names: string[]) => void;
  disabled?: boolean;
  error?: string | null;
}

/** With whom something is shared: with everybody, or with people by name. */
export function SharingField({ value, onChange, disabled, error }: FieldProps) {
  const everybody = value.includes(EVERYBODY);
  const people = value.filter((name) => name !== EVERYBODY);
  return (
    <Stack gap="sm">
      <Switch
        label={words.everybody}
        checked={everybody}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked ? [...people, EVERYBODY] : people)}
      />
      <TagsInput
        size="xs"
        label={words.people}
        description={words.peopleHint}
        value={people}
        disabled={disabled}
        error={error}
        clearable
        splitChars={[",", " "]}
        acceptValueOnBlur
        onChange={(names) => onChange(everybody ? [...names, EVERYBODY] : names)}
      />
    </Stack>
  );
}

interface Props {
  /** As the server has it now. */
  sharedWith: readonly string[];
  /** Whether whoever looks may change it. */
  mayChange: boolean;
  onSave: (names: string[]) => void;
  pending: boolean;
  error: Refused | null;
}

/** With whom something is shared, and a way to change that. */
export function Sharing({ sharedWith, mayChange, onSave, pending, error }: Props) {
  const canChange = useCanChange();
  const [chosen, setChosen] = useState<string[] | null>(null);
  const now = chosen ?? [...sharedWith];
  const isSame = [...now].sort().join("\n") === [...sharedWith].sort().join("\n");
  const shown = sharedWith.length === 0 ? words.nobody : sharedWith.map(nameOf).join(", ");
  if (!mayChange) {
    return (
      <Panel title={words.title}>
        <span className="wrap">{shown}</span>
      </Panel>
    );
  }
  return (
    <Panel title={words.title}>
      <Stack gap="sm">
        <SharingField value={now} onChange={setChosen} disabled={pending} error={error?.of("shared_with")} />
        {error?.status === 412 ? (
          <Text size="sm" c="red" role="alert" className="wrap">
            {words.stale(shown)}
          </Text>
        ) : (
          error !== null && <Problem error={error} />
        )}
        <Group>
          <Button variant="default" disabled={isSame || !canChange} loading={pending} onClick={() => onSave(now)}>
            {words.save}
          </Button>
        </Group>
      </Stack>
    </Panel>
  );
}

function nameOf(name: string): string {
  return name === EVERYBODY ? words.everybody : name;
}
