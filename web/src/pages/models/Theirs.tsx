import { Table } from "@mantine/core";
import { text } from "../../text";
import { differencesOf } from "./meanwhile";
import type { ModelForm } from "./model_form";

const words = text.models;

interface Props {
  before: ModelForm;
  theirs: ModelForm;
  mine: ModelForm;
}

/** What somebody else has set meanwhile, beside what stands in the form. */
export function Theirs({ before, theirs, mine }: Props) {
  const rows = differencesOf(before, theirs, mine);
  if (rows.length === 0) return null;
  return (
    <Table mt="xs" withRowBorders={false} verticalSpacing={2}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th />
          <Table.Th>{words.form.theirsTitle}</Table.Th>
          <Table.Th>{words.form.yoursTitle}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(([name, their, yours]) => (
          <Table.Tr key={name}>
            <Table.Td className="wrap">{words.names[name] ?? name}</Table.Td>
            <Table.Td className="wrap">{their || words.form.nothing}</Table.Td>
            <Table.Td className="wrap">{yours || words.form.nothing}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
