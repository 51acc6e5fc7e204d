import { Button, Checkbox, Popover, Stack } from "@mantine/core";
import { IconColumns } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { text } from "../text";

interface Props {
  /** What can be shown, by its word in the address. */
  columns: readonly { id: string; title: string }[];
  shown: ReadonlySet<string>;
  change: (shown: ReadonlySet<string>) => void;
}

/** Chooses which columns a table shows. */
export function Columns({ columns, shown, change }: Props) {
  const kept = [...shown].join();
  const [chosen, setChosen] = useState(shown);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `kept` says what `shown` holds
  useEffect(() => setChosen(shown), [kept]);
  return (
    <Popover position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<IconColumns size={16} />}>
          {text.table.columns}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={text.table.columns}>
        <Stack gap="xs">
          {columns.map(({ id, title }) => (
            <Checkbox
              key={id}
              size="xs"
              data-mantine-stop-propagation // Escape closes this, not the dialog around it
              label={title}
              checked={chosen.has(id)}
              onChange={(event) => {
                const next = new Set(chosen);
                if (event.currentTarget.checked) next.add(id);
                else next.delete(id);
                setChosen(next);
                change(next);
              }}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
