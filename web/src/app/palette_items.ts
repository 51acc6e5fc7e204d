import { text } from "../text";
import { placesOf } from "./places";
import { useMe } from "./session";

export interface Found {
  kind: string;
  label: string;
  path: string;
  detail?: string;
}

/** What fits a search: pages and commands at once, and everything else as soon as the server has answered. */
export function usePalette(query: string, _asked: string): Found[] {
  const me = useMe();
  const pages = placesOf(me.permissions)
    .flatMap((group) => group.places)
    .map((place) => ({ kind: text.palette.page, label: place.title, path: place.path }));
  const commands = me.permissions.includes("jobs:write")
    ? [{ kind: text.palette.command, label: text.palette.submit, path: "/submit" }]
    : [];
  return [...pages, ...commands].filter((item) => fits(item.label, query));
}

/** Whether every word of a query begins a word of the text. */
export function fits(label: string, query: string): boolean {
  const words = label.toLowerCase().split(/[\s._/-]+/);
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((part) => part === "" || words.some((word) => word.startsWith(part)) || label.toLowerCase().includes(part));
}
