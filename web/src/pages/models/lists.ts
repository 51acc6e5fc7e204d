/** All templates, models and trainings that one sees, and what of them is shown. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { cache, refetch } from "../../api/cache";
import { call, type Schemas } from "../../api/client";
import type { Refused } from "../../api/problem";

export type Template = Schemas["TemplateView"];
export type Model = Schemas["ModelView"];
export type Training = Schemas["TrainingView"];

const LIMIT = 1000;
/** Of the server's pages: so many rows are enough for anybody to look at. */
const MOST_PAGES = 10;

interface Part<T> {
  rows: readonly T[];
  next: string | null;
}

async function everyPage<T>(page: (after: string) => Promise<Part<T>>): Promise<readonly T[]> {
  const all: T[] = [];
  let after = "";
  for (let count = 0; count < MOST_PAGES; count += 1) {
    const { rows, next } = await page(after);
    all.push(...rows);
    if (next === null) break;
    after = next;
  }
  return all;
}

export function useTemplates(): UseQueryResult<readonly Template[], Refused> {
  return useQuery<readonly Template[], Refused>({
    queryKey: ["get", "/v1/templates", {}],
    queryFn: ({ signal }) =>
      everyPage(async (after) => {
        const page = await call("get", "/v1/templates", { params: { query: { after, limit: LIMIT } } }, signal);
        return { rows: page.templates, next: page.next };
      }),
  });
}

export function useModels(): UseQueryResult<readonly Model[], Refused> {
  return useQuery<readonly Model[], Refused>({
    queryKey: ["get", "/v1/models", {}],
    queryFn: ({ signal }) =>
      everyPage(async (after) => {
        const page = await call("get", "/v1/models", { params: { query: { after, limit: LIMIT } } }, signal);
        return { rows: page.models, next: page.next };
      }),
  });
}

/** The trainings of a model, or of all, the newest first. */
export function useTrainings(model: string | null): UseQueryResult<readonly Training[], Refused> {
  return useQuery<readonly Training[], Refused>({
    queryKey: ["get", "/v1/trainings", { params: { query: { model } } }],
    queryFn: ({ signal }) =>
      model === null
        ? everyPage(async (before) => {
            const page = await call("get", "/v1/trainings", { params: { query: { before, limit: LIMIT } } }, signal);
            return { rows: page.trainings, next: page.next };
          })
        : everyPage(async (after) => {
            const params = { path: { name: model }, query: { after, limit: LIMIT } };
            const page = await call("get", "/v1/models/{name}/trainings", { params }, signal);
            return { rows: page.trainings, next: page.next };
          }).then((all) => [...all].sort((one, other) => other.created_at - one.created_at)),
  });
}

const ENDED: readonly string[] = ["completed", "failed", "stopped", "removed"];

/** Whether a training in this state may still go on. */
export function isLive(state: string): boolean {
  return !ENDED.includes(state);
}

/** Ask anew for everything of templates, models and trainings. */
export function refetchModels(): void {
  refetch(isOfModels);
}

/** The same after something was removed: what is shown now is not asked for, since that is what is gone. */
export function refetchModelsLater(): void {
  const predicate = ({ queryKey }: { queryKey: readonly unknown[] }) => isOfModels(String(queryKey[1]));
  void cache.invalidateQueries({ predicate, refetchType: "none" });
}

function isOfModels(path: string): boolean {
  return /^\/v1\/(models|templates|trainings)/.test(path);
}

/** The rows that have every word of a search somewhere. */
export function found<T>(rows: readonly T[], search: string, wordsOf: (row: T) => readonly string[]): readonly T[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const all = wordsOf(row).join(" ").toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

export type Keys<T> = Readonly<Record<string, (row: T) => string | number>>;

/** The rows in the order that a word names; with `-` before it the largest first. */
export function sorted<T>(rows: readonly T[], sort: string, keys: Keys<T>): readonly T[] {
  const descending = sort.startsWith("-");
  const key = keys[descending ? sort.slice(1) : sort];
  if (key === undefined) return rows;
  const compare = (one: T, other: T) => {
    const a = key(one);
    const b = key(other);
    return typeof a === "string" && typeof b === "string" ? a.localeCompare(b) : Number(a) - Number(b);
  };
  return [...rows].sort((one, other) => (descending ? compare(other, one) : compare(one, other)));
}
