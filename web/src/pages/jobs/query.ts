/** What a list of jobs asks for, read from the address of its page; and which columns it shows. */
import type { InitOf } from "../../api/client";

type Query = NonNullable<NonNullable<InitOf<"/v1/jobs/rows", "get">>["params"]>["query"];
export type RowsQuery = NonNullable<Query>;
type Sort = NonNullable<RowsQuery["sort"]>;

export const FILTERS = ["state", "owner", "queue", "kind", "tag"] as const;
export type Filter = (typeof FILTERS)[number];

const SORTS: readonly Sort[] = ["submitted", "ended", "name", "state", "owner", "queue", "priority", "slots"].flatMap(
  (word) => [word as Sort, `-${word}` as Sort],
);
const MAX_SEARCH = 200;

/** The words of a filter: several with commas, or several times. */
export function wordsOf(values: readonly string[]): string[] {
  return [...new Set(values.flatMap((value) => value.split(",")).map((word) => word.trim()))].filter(
    (word) => word !== "",
  );
}

/** What the server is asked; what the address has and the server does not know is left out. */
export function queryOf(search: URLSearchParams): RowsQuery {
  const query: RowsQuery = { sort: SORTS.find((sort) => sort === search.get("sort")) ?? "-submitted" };
  for (const filter of FILTERS) {
    const words = wordsOf(search.getAll(filter));
    if (words.length > 0) query[filter] = words;
  }
  const text = (search.get("q") ?? "").trim().slice(0, MAX_SEARCH);
  if (text !== "") query.q = text;
  return query;
}

/** Whether something but the order and the columns was chosen. */
export function isFiltered(search: URLSearchParams): boolean {
  return [...FILTERS, "q"].some((name) => (search.get(name) ?? "") !== "");
}

/** The views that everybody has: filters, as a query. */
export function quickViews(me: string): { id: "all" | "mine" | "running" | "waiting" | "ended"; query: string }[] {
  return [
    { id: "all", query: "" },
    { id: "mine", query: new URLSearchParams({ owner: me }).toString() },
    { id: "running", query: "state=running" },
    { id: "waiting", query: "state=waiting" },
    { id: "ended", query: "state=ended" },
  ];
}

/** Whether two queries filter alike, whatever their order and columns. */
export function sameFilters(one: URLSearchParams, other: URLSearchParams): boolean {
  return [...FILTERS, "q"].every(
    (name) => wordsOf(one.getAll(name)).sort().join() === wordsOf(other.getAll(name)).sort().join(),
  );
}

/** The columns that are shown, from `cols=`; those of `usual` if it says nothing sensible. */
export function columnsOf(given: string | null, all: readonly string[], usual: readonly string[]): ReadonlySet<string> {
  const known = wordsOf([given ?? ""]).filter((id) => all.includes(id));
  return new Set(known.length > 0 ? known : usual);
}
