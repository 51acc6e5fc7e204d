import { Button, Checkbox, Group, Stack, TagsInput } from "@mantine/core";
import { useState } from "react";
import { Refused } from "../api/problem";
import { useCanChange } from "../app/Connection";
import { text } from "../text";
import { Dialog } from "./Dialog";
import { Problem } from "./Notice";

interface Props {
  name: string;
  sharedWith: readonly string[];
  onClose: () => void;
  /** Called with names of users; `*` is everybody. */
  onSave: (people: string[]) => void;
  pending: boolean;
  error: unknown;
}

const words = text.sharing;
const EVERYBODY = "*";

/** With whom something is shared: nobody, some people, or everybody. */
export function ShareDialog({ name, sharedWith, onClose, onSave, pending, error }: Props) {
  const canChange = useCanChange();
  const [everybody, setEverybody] = useState(sharedWith.includes(EVERYBODY));
  const [people, setPeople] = useState(sharedWith.filter((one) => one !== EVERYBODY));
  const isStale = error instanceof Refused && error.status === 412;
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{`${words.title}: ${name}`}</span>}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSave(everybody ? [EVERYBODY, ...people] : people);
        }}
      >
        <Stack gap="md">
          <Checkbox
            label={words.everybody}
            checked={everybody}
            onChange={(event) => setEverybody(event.currentTarget.checked)}
          />
          <TagsInput
            size="xs"
            label={words.people}
            description={words.peopleHint}
            value={people}
            onChange={setPeople}
            maxTags={1000}
            error={error instanceof Refused ? error.of("shared_with") : null}
          />
          {isStale ? (
            <div role="alert">{words.stale(sharedWith.join(", ") || words.nobody)}</div>
          ) : (
            error != null && <Problem error={error} />
          )}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {text.cancel}
            </Button>
            <Button type="submit" loading={pending} disabled={!canChange}>
              {words.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
