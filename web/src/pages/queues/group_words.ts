/** What a resource group is made of, in short words, and what is typed of it as the server takes it. */
import type { Schemas } from "../../api/client";
import { text } from "../../text";

const words = text.queues;

type Hosts = Schemas["Hosts"];
type HostsRequest = Schemas["HostsRequest"];
export type HostsKind = "all" | "names" | "labels";

export interface GroupFields {
  name: string;
  description: string;
  /** Empty: all slots of every host. */
  formula: string;
  byFormula: boolean;
  hosts: HostsKind;
  names: readonly string[];
  /** As `name=value`. */
  labels: readonly string[];
}

/** How many slots of every host. */
export function saySlots(group: Schemas["ResourceGroup"]): string {
  return group.slots_per_host == null ? words.allSlots : words.perHost(String(group.slots_per_host));
}

/** Which hosts. */
export function sayHosts(hosts: Hosts): string {
  if (hosts.names != null) return hosts.names.length > 4 ? `${hosts.names.length} hosts` : hosts.names.join(", ");
  const labels = labelsOf(hosts);
  return labels.length > 0 ? labels.join(", ") : words.allHosts;
}

export function labelsOf(hosts: Hosts): string[] {
  return Object.entries(hosts.labels ?? {}).map(([name, value]) => `${name}=${value}`);
}

export function fieldsOf(group: Schemas["ResourceGroup"] | undefined): GroupFields {
  const hosts = group?.hosts ?? {};
  return {
    name: group?.name ?? "",
    description: group?.description ?? "",
    formula: group?.slots_per_host == null ? "" : String(group.slots_per_host),
    byFormula: group?.slots_per_host != null,
    hosts: hosts.names != null ? "names" : hosts.labels != null && labelsOf(hosts).length > 0 ? "labels" : "all",
    names: hosts.names ?? [],
    labels: labelsOf(hosts),
  };
}

/** The slots per host: a number where one is written, else a formula, null for all. */
export function slotsOf(fields: GroupFields): number | string | null {
  if (!fields.byFormula) return null;
  const formula = fields.formula.trim();
  return /^\d{1,7}$/.test(formula) ? Number(formula) : formula;
}

export function hostsOf(fields: GroupFields): HostsRequest {
  if (fields.hosts === "names") return { all: false, names: [...fields.names] };
  if (fields.hosts === "labels") return { all: false, labels: Object.fromEntries(fields.labels.map(split)) };
  return { all: true };
}

/** What cannot be sent of what was typed; null if all of it can. */
export function whatIsMissing(fields: GroupFields): "formula" | "labels" | null {
  if (fields.byFormula && fields.formula.trim() === "") return "formula";
  return fields.hosts === "labels" && fields.labels.length === 0 ? "labels" : null;
}

export function isLabel(label: string): boolean {
  return label.indexOf("=") > 0;
}

function split(label: string): [string, string] {
  const at = label.indexOf("=");
  return [label.slice(0, at), label.slice(at + 1)];
}
