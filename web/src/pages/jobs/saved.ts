/** Saved views of the list of jobs: names and queries, as the server takes them. */
import type { Schemas } from "../../api/client";

export type View = Schemas["SavedView"];

const MAX_VIEWS = 50;
const MAX_NAME = 60;
const MAX_QUERY = 2_000;

/** The views with one more, in the place of one of that name; of too many the oldest is left out. */
export function withView(views: readonly View[], view: View): View[] {
  const others = views.filter((other) => other.name !== view.name);
  return [...others, view].slice(-MAX_VIEWS);
}

/** The views of the server and those that a browser has kept before, as far as the server takes them. */
export function withKept(views: readonly View[], kept: readonly View[]): View[] {
  const known = new Set(views.map((view) => view.name));
  return [...views, ...kept.filter((view) => !known.has(view.name))].slice(0, MAX_VIEWS);
}

/** What a browser has kept: an earlier console wrote it, or anybody else. */
export function readKept(text: string | null): View[] {
  const views = new Map<string, View>();
  for (const one of parsed(text)) {
    if (typeof one !== "object" || one === null) continue;
    const { name, query } = one as Record<string, unknown>;
    if (typeof name === "string" && typeof query === "string" && isView(name, query)) views.set(name, { name, query });
  }
  return [...views.values()];
}

function isView(name: string, query: string): boolean {
  const isPlain = /^[\x21-\x7e]*$/.test(query);
  return name !== "" && name.length <= MAX_NAME && name.trim() === name && query.length <= MAX_QUERY && isPlain;
}

function parsed(text: string | null): unknown[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}
