import { text } from "../../text";

const words = text.models.model;

/** With whom something is shared, in words. */
export function sharedWords(names: readonly string[]): string {
  if (names.includes("*")) return words.everybody;
  return names.length === 0 ? words.nobody : names.join(", ");
}
