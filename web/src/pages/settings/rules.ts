import type { Schemas } from "../../api/client";

export type Material = Schemas["Material"];
type Rule = Schemas["Rule"];
type RuleRequest = Schemas["RuleRequest"];

export const MATERIALS: readonly Material[] = ["logs", "metrics", "checkpoints", "results", "audit"];
const DAY_S = 86_400;
const GIGABYTE = 1e9;

/** What a form holds of one rule; empty: no limit. */
export interface Limit {
  days: number | "";
  gigabytes: number | "";
}

export type Limits = Readonly<Record<Material, Limit>>;

/** The rules as a form holds them: days and gigabytes. */
export function limitsOf(rules: readonly Rule[]): Limits {
  const of = (material: Material): Limit => {
    const rule = rules.find((one) => one.material === material);
    return {
      days: rule?.max_age_s == null ? "" : round(rule.max_age_s / DAY_S),
      gigabytes: rule?.max_bytes == null ? "" : round(rule.max_bytes / GIGABYTE),
    };
  };
  return {
    logs: of("logs"),
    metrics: of("metrics"),
    checkpoints: of("checkpoints"),
    results: of("results"),
    audit: of("audit"),
  };
}

/** What is sent for a form; a limit that was not touched is sent as it was, to the byte and the second. */
export function rulesOf(limits: Limits, before: readonly Rule[]): RuleRequest[] {
  const shown = limitsOf(before);
  return MATERIALS.flatMap((material) => {
    const limit = limits[material];
    const old = before.find((one) => one.material === material);
    const same = (field: keyof Limit) => limit[field] === shown[material][field];
    const days = same("days") ? (old?.max_age_s == null ? null : old.max_age_s / DAY_S) : numberOf(limit.days);
    const gigabytes = numberOf(limit.gigabytes);
    const size = same("gigabytes")
      ? (old?.max_bytes ?? null)
      : gigabytes === null
        ? null
        : Math.round(gigabytes * GIGABYTE);
    if (days === null && size === null) return [];
    return [{ material, max_age_days: days, max_bytes: size }];
  });
}

export function sameLimits(one: Limits, other: Limits): boolean {
  return MATERIALS.every(
    (material) => one[material].days === other[material].days && one[material].gigabytes === other[material].gigabytes,
  );
}

function numberOf(value: number | ""): number | null {
  return value === "" ? null : value;
}

function round(value: number): number {
  return Number(value.toPrecision(6));
}
