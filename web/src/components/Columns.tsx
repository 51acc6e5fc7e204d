import { Button, Checkbox, Popover, Stack } from "@mantine/core";
import { IconColumns } from "@tabler/icons-react";
import { text } from "../text";

interface Props {
  /** What can be shown, by its word in the address. */
  columns: readonly { id: string; title: string }[];
  shown: ReadonlySet<string>;
  change: (shown: ReadonlySet<string>) => void;
}

/** Chooses which columns a table shows. */
export function Columns({ columns, shown, change }: Props) {
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
              label={title}
              checked={shown.has(id)}
              onChange={(event) => {
                const next = new Set(shown);
                if (event.currentTarget.checked) next.add(id);
                else next.delete(id);
                change(next);
              }}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
