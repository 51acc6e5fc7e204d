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
      return "/machines";
    case "user":
      return `/people/${name}`;
  }
}

/** Whether every word of a query stands somewhere in a text. */
export function fits(label: string, query: string): boolean {
  const whole = label.toLowerCase();
  return wordsOf(query).every((part) => whole.includes(part));
}

/** What begins like the query first, then what has a word that does, then all else; in the order it was in. */
export function bestFirst<T extends { label: string }>(items: readonly T[], query: string): T[] {
  const asked = query.trim().toLowerCase();
  const rank = ({ label }: T): number => {
    const whole = label.toLowerCase();
    if (whole.startsWith(asked)) return 0;
    return wordsOf(whole).some((word) => wordsOf(asked).some((part) => word.startsWith(part))) ? 1 : 2;
  };
  return items.toSorted((one, other) => rank(one) - rank(other));
}

function wordsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[\s._/-]+/)
    .filter((word) => word !== "");
}
