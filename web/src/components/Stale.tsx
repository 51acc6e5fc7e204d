import { Alert, Button, Group, Table, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { text } from "../text";

export interface Difference {
  label: string;
  /** What it is now. */
  theirs: string;
  /** What it would become. */
  mine: string;
}

interface Props {
  differences: readonly Difference[];
  /** Take what is there now. */
  onTheirs: () => void;
  /** Change it all the same, from what is there now. */
  onMine: () => void;
}

/** Somebody else changed what one is editing: both versions, and which of them shall be. */
export function Stale({ differences, onTheirs, onMine }: Props) {
  return (
    <Alert
      color="yellow"
      variant="outline"
      icon={<IconAlertTriangle size={18} />}
      title={text.stale.title}
      styles={{ title: { color: "var(--state-waiting)" } }}
      role="alert"
    >
      <Text size="sm">{text.stale.hint}</Text>
      {differences.length > 0 && (
        <Table mt="xs" verticalSpacing={4} layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th />
              <Table.Th>{text.stale.theirs}</Table.Th>
              <Table.Th>{text.stale.mine}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {differences.map((difference) => (
              <Table.Tr key={difference.label}>
                <Table.Th scope="row">{difference.label}</Table.Th>
                <Table.Td className="wrap">{difference.theirs}</Table.Td>
                <Table.Td className="wrap">{difference.mine}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      <Group gap="xs" mt="sm">
        <Button variant="default" onClick={onTheirs}>
          {text.stale.takeTheirs}
        </Button>
        <Button variant="default" onClick={onMine}>
          {text.stale.takeMine}
        </Button>
      </Group>
    </Alert>
  );
}
