import { Group, Text } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { Columns } from "../../components/Columns";
import { type Column, DataTable } from "../../components/DataTable";
import { Empty } from "../../components/Notice";
import { useAddress } from "../../components/useAddress";
import { count } from "../../format/format";
import { text } from "../../text";
import { labelsOf } from "./group_words";

const words = text.queues;

type Host = Schemas["HostView"];
const CHOICES = ["slots", "all", "ngpus", "ncpus", "labels"] as const;
const USUAL = "slots,all,labels";

interface Props {
  hosts: readonly Host[];
  /** What they come to. */
  aside: string;
  notes?: readonly string[];
}

/** The hosts that a group has slots of, with what one wants to see of them. */
export function Members({ hosts, aside, notes = [] }: Props) {
  const address = useAddress();
  const shown = new Set((address.get("columns") ?? USUAL).split(","));
  return (
    <div>
      <Group justify="space-between" mb="xs" gap="xs">
        <Text component="h2" fz={14} fw={600} m={0}>
          {words.members}{" "}
          <Text span c="dimmed" fw={400}>
            {aside}
          </Text>
        </Text>
        <Columns
          columns={CHOICES.map((id) => ({ id, title: words.memberColumns[id] ?? id }))}
          shown={shown}
          change={(next) => address.set({ columns: CHOICES.filter((id) => next.has(id)).join(",") || "none" })}
        />
      </Group>
      {notes.map((note) => (
        <Text key={note} size="sm" c="dimmed" mb="xs" className="wrap">
          {note}
        </Text>
      ))}
      <DataTable
        label={words.members}
        columns={COLUMNS}
        rows={hosts}
        rowId={(host) => host.node_id}
        hidden={CHOICES.filter((id) => !shown.has(id))}
        maxHeight="320px"
        empty={notes.length === 0 && <Empty title={words.noMembers.title} hint={words.noMembers.hint} />}
      />
    </div>
  );
}

function number(id: string, of: (host: Host) => number): Column<Host> {
  return {
    id,
    header: words.memberColumns[id] ?? id,
    size: 88,
    meta: { numeric: true },
    cell: ({ row }) => count(of(row.original)),
  };
}

const COLUMNS: readonly Column<Host>[] = [
  {
    id: "host",
    header: words.memberColumns.host ?? "",
    size: 200,
    cell: ({ row }) => <span title={row.original.node_id}>{row.original.node_id}</span>,
  },
  number("slots", (host) => host.num_slots),
  number("all", (host) => host.num_all_slots),
  number("ngpus", (host) => host.num_gpus),
  number("ncpus", (host) => host.num_cpus),
  {
    id: "labels",
    header: words.memberColumns.labels ?? "",
    meta: { grow: true },
    cell: ({ row }) => labelsOf({ labels: row.original.labels }).join(", "),
  },
];
