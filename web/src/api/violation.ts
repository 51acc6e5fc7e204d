/** What is wrong with a value, by what the server's description says of its field; the server says it again anyway. */
import { text } from "../text";

export interface Constraint {
  type?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  enum?: readonly unknown[];
  default?: unknown;
  maxItems?: number;
  maxProperties?: number;
  items?: Constraint;
  propertyNames?: Constraint;
  patternProperties?: Readonly<Record<string, Constraint>>;
  /** Several things are possible; the server says which of them it is. */
  anyOf?: readonly Constraint[];
}

/** What is wrong, in a sentence; null if nothing is. `form` says in words what a pattern asks for. */
export function violation(constraint: Constraint | undefined, value: unknown, form?: string): string | null {
  if (constraint === undefined || value === null || value === undefined) return null;
  if (typeof value === "number") return ofNumber(constraint, value);
  if (typeof value === "string") return ofText(constraint, value, form);
  if (Array.isArray(value)) return ofList(constraint, value, form);
  return typeof value === "object" ? ofMapping(constraint, value as Record<string, unknown>, form) : null;
}

const words = text.violation;

function ofNumber(constraint: Constraint, value: number): string | null {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, type } = constraint;
  if (!Number.isFinite(value)) return words.number;
  if (type === "integer" && !Number.isInteger(value)) return words.integer;
  if (minimum !== undefined && maximum !== undefined && (value < minimum || value > maximum)) {
    return words.between(minimum, maximum);
  }
  if (minimum !== undefined && value < minimum) return words.atLeast(minimum);
  if (maximum !== undefined && value > maximum) return words.atMost(maximum);
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return words.above(exclusiveMinimum);
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) return words.below(exclusiveMaximum);
  return null;
}

function ofText(constraint: Constraint, value: string, form?: string): string | null {
  const { minLength = 0, maxLength, pattern } = constraint;
  const length = [...value].length;
  if (length < minLength) return words.shorter(minLength);
  if (maxLength !== undefined && length > maxLength) return words.longer(maxLength, length);
  if (pattern !== undefined && !new RegExp(pattern, "u").test(value)) return form ?? words.form;
  if (constraint.enum !== undefined && !constraint.enum.includes(value)) return words.oneOf(constraint.enum.join(", "));
  return null;
}

function ofList(constraint: Constraint, values: readonly unknown[], form?: string): string | null {
  if (constraint.maxItems !== undefined && values.length > constraint.maxItems) return words.many(constraint.maxItems);
  for (const value of values) {
    const wrong = violation(constraint.items, value, form);
    if (wrong !== null) return words.at(String(value), wrong);
  }
  return null;
}

function ofMapping(constraint: Constraint, values: Record<string, unknown>, form?: string): string | null {
  const names = Object.keys(values);
  if (constraint.maxProperties !== undefined && names.length > constraint.maxProperties) {
    return words.many(constraint.maxProperties);
  }
  const patterns = Object.keys(constraint.patternProperties ?? {});
  for (const name of names) {
    const wrong = violation(constraint.propertyNames, name);
    if (wrong !== null) return words.at(name, wrong);
    if (patterns.length > 0 && !patterns.some((pattern) => new RegExp(pattern, "u").test(name))) {
      return words.at(name, form ?? words.form);
    }
  }
  return null;
}
