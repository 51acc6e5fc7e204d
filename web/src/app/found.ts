import type { Schemas } from "../api/client";

type Noun = Schemas["FoundNoun"];

/** Where something that was found is shown. */
export function placeOf({ kind, id }: Pick<Noun, "kind" | "id">): string {
  const name = encodeURIComponent(id);
  switch (kind) {
    case "job":
      return `/jobs/${name}`;
    case "endpoint":
      return `/endpoints/${name}`;
    case "search":
      return `/searches/${name}`;
    case "model":
      return `/models/${name}`;
    case "template":
      return `/models/templates/${name}`;
    case "dataset":
      return `/datasets/${name}`;
    case "environment":
      return `/environments/${name}`;
    case "queue":
      return `/queues/${name}`;
    case "machine":
      return `/machines?machine=${name}`;
    case "user":
      return `/people/${name}`;
  }
}

/** Whether every word of a query begins a word of the text, or stands somewhere in it. */
export function fits(label: string, query: string): boolean {
  const whole = label.toLowerCase();
  const words = whole.split(/[\s._/-]+/);
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((part) => part === "" || words.some((word) => word.startsWith(part)) || whole.includes(part));
}
