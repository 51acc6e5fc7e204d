import { Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { Dialog } from "../../components/Dialog";
import { Problem } from "../../components/Notice";
import { text } from "../../text";
import { searchesChanged } from "./changed";
import { scalarOf } from "./search_form";
import { type SearchView, spaceText, valueText } from "./shown";

const words = text.searches.add;

/** Values that are to be tried before others. */
export function AddTrial({ search, onClose }: { search: SearchView; onClose: () => void }) {
  const canChange = useCanChange();
  const [typed, setTyped] = useState<Record<string, string>>({});
  const add = useChange("post", "/v1/searches/{name}/trials", {
    onSuccess: () => {
      searchesChanged();
      onClose();
    },
  });
  const parameters = Object.entries(search.settings.parameters).filter(([, parameter]) => parameter.kind !== "fixed");
  const values = Object.fromEntries(
    parameters.flatMap(([name, parameter]) => {
      const given = typed[name] ?? "";
      if (given === "") return [];
      return [[name, parameter.kind === "choice" ? (parameter.choices[Number(given)] ?? null) : scalarOf(given)]];
    }),
  );
  const error = (name: string) => add.error?.of(`trials.0.${name}`) ?? null;
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{words.title(search.name)}</span>}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate({ params: { path: { name: search.name } }, body: { trials: [values] } });
        }}
      >
        <Stack gap="md">
          <Text c="dimmed">{words.hint}</Text>
          {parameters.map(([name, parameter]) =>
            parameter.kind === "choice" ? (
              <Select
                key={name}
                label={name}
                clearable
                data={parameter.choices.map((choice, index) => ({ value: String(index), label: valueText(choice) }))}
                value={typed[name] ?? null}
                onChange={(value) => setTyped((before) => ({ ...before, [name]: value ?? "" }))}
                error={error(name)}
              />
            ) : (
              <TextInput
                key={name}
                label={name}
                description={spaceText(parameter)}
                inputMode="decimal"
                value={typed[name] ?? ""}
                onChange={(event) => setTyped((before) => ({ ...before, [name]: event.target.value.trim() }))}
                error={error(name)}
              />
            ),
          )}
          {add.error && <Problem error={add.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {text.cancel}
            </Button>
            <Button type="submit" loading={add.isPending} disabled={!canChange || Object.keys(values).length === 0}>
              {words.add}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
