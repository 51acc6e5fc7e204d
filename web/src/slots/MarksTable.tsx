import { Table } from "@mantine/core";
import { Swatch } from "../components/Swatch";
import { Time } from "../components/Time";
import { count } from "../format/format";
import { text } from "../text";
import { slotsOf } from "./Marks";
import type { SlotMark } from "./marks";

const words = text.slots.marks;

/** The same as the chart, in rows: what happened, newest first. */
export function MarksTable({ marks, more, caption }: { marks: readonly SlotMark[]; more: number; caption: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a box that scrolls must be reached by keys
    <div role="region" aria-label={words.label} tabIndex={0} style={{ overflow: "auto", maxHeight: 380 }}>
      <Table stickyHeader captionSide="top">
        <Table.Caption>{caption}</Table.Caption>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{words.columns.time}</Table.Th>
            <Table.Th>{words.columns.who}</Table.Th>
            <Table.Th>{words.columns.what}</Table.Th>
            <Table.Th className="num">{words.columns.slots}</Table.Th>
            <Table.Th>{words.columns.why}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {[...marks]
            .sort((one, other) => other.seq - one.seq)
            .map((mark) => (
              <Table.Tr key={mark.seq}>
                <Table.Td>
                  <Time at={mark.at} />
                </Table.Td>
                <Table.Td>
                  <Swatch colour={mark.colour ?? null} size={10} /> {mark.job_id ?? mark.name}
                </Table.Td>
                <Table.Td>{words[mark.kind]}</Table.Td>
                <Table.Td className="num">{mark.to_slots == null ? "" : slotsOf(mark)}</Table.Td>
                <Table.Td className="wrap">
                  {mark.message}
                  {mark.who !== "" && ` · ${words.by(mark.who)}`}
                </Table.Td>
              </Table.Tr>
            ))}
        </Table.Tbody>
      </Table>
      {marks.length === 0 && <p className="dim">{words.none}</p>}
      {more > 0 && <p className="dim">{words.older(count(more))}</p>}
    </div>
  );
}
