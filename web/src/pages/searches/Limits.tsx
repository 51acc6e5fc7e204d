import { Alert, Button, Group, NumberInput, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { SEARCH } from "../../api/constraints";
import { useRevised } from "../../api/useRevised";
import { violation } from "../../api/violation";
import { useCanChange } from "../../app/Connection";
import { Dialog } from "../../components/Dialog";
import { Problem } from "../../components/Notice";
import { text } from "../../text";
import { secondsOf, timeText } from "../submit/units";
import { searchesChanged } from "./changed";
import { changingOf } from "./changing";
import { limitTexts, type SearchView } from "./shown";

const words = text.searches.limits;
const NUMBERS = ["max_trials", "parallel", "max_slot_hours", "target"] as const;

type Numbers = Record<(typeof NUMBERS)[number], number | string>;

/** When a search ends; it can be changed while it runs. */
export function Limits({ search, onClose }: { search: SearchView; onClose: () => void }) {
  const canChange = useCanChange();
  const { settings } = search;
  const [numbers, setNumbers] = useState<Numbers>(() => ({
    max_trials: settings.max_trials ?? "",
    parallel: settings.parallel ?? "",
    max_slot_hours: settings.max_slot_hours ?? "",
    target: settings.target ?? "",
  }));
  const [time, setTime] = useState(settings.max_time_s == null ? "" : timeText(settings.max_time_s));
  const [description, setDescription] = useState(settings.description);
  const [shown] = useState(search);
  const save = useRevised({ ...changingOf(search.name), onSuccess: onClose, onSettled: searchesChanged });
  const isStale = save.error?.status === 412;
  const seconds = time.trim() === "" ? null : secondsOf(time);
  const wrongTime = time.trim() !== "" && seconds === null ? words.time : (save.error?.of("max_time_s") ?? null);
  const wrongOf = (field: (typeof NUMBERS)[number]) =>
    (numbers[field] === "" ? null : violation(SEARCH[field], Number(numbers[field]))) ?? save.error?.of(field) ?? null;
  const number = (value: number | string) => (value === "" ? null : Number(value));
  const body = {
    max_trials: number(numbers.max_trials),
    parallel: number(numbers.parallel),
    max_slot_hours: number(numbers.max_slot_hours),
    target: number(numbers.target),
    max_time_s: seconds,
    description,
  };
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{words.title(search.name)}</span>}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate({ shown, body });
        }}
      >
        <Stack gap="md">
          <Text c="dimmed">{words.hint}</Text>
          {NUMBERS.map((field) => (
            <NumberInput
              key={field}
              label={words[field]}
              placeholder={field === "parallel" ? words.auto : words.none}
              description={field === "target" ? words.targetHint : undefined}
              allowDecimal={field === "max_slot_hours" || field === "target"}
              value={numbers[field]}
              onChange={(value) => setNumbers((before) => ({ ...before, [field]: value }))}
              error={wrongOf(field)}
            />
          ))}
          <TextInput
            label={words.max_time}
            description={words.timeHint}
            placeholder={words.none}
            value={time}
            onChange={(event) => setTime(event.currentTarget.value)}
            error={wrongTime}
          />
          <Textarea
            label={words.description}
            autosize
            minRows={2}
            maxRows={6}
            value={description}
            onChange={(event) => setDescription(event.currentTarget.value)}
            error={save.error?.of("description")}
          />
          {isStale ? (
            <Alert color="yellow" variant="outline" role="alert">
              {words.conflict} {limitTexts((save.theirs ?? search).settings).join(", ") || words.none}. {words.again}
            </Alert>
          ) : (
            save.error && <Problem error={save.error} />
          )}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {text.cancel}
            </Button>
            <Button
              type="submit"
              loading={save.isPending}
              disabled={
                !canChange ||
                (time.trim() !== "" && seconds === null) ||
                NUMBERS.some((field) => wrongOf(field) !== null && !save.error)
              }
            >
              {words.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
