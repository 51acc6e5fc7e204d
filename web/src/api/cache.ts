import { type Query, QueryClient, type QueryFilters } from "@tanstack/react-query";
import { Refused, Unreachable } from "./problem";

/** What the server answered. Nothing grows old by itself: events of the server say what has changed. */
export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 5 * 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (count, error) => error instanceof Unreachable && count < 2,
      networkMode: "always",
      throwOnError: false,
    },
    mutations: { networkMode: "always", retry: false },
  },
});

const during = new WeakSet<Query>();
cache.getQueryCache().subscribe(({ query }) => {
  if (query.state.fetchStatus === "idle" && during.delete(query)) outdate({ queryKey: query.queryKey, exact: true });
});

/**
 * Ask again for every one of these answers that is shown, and for the others when they are shown next.
 *
 * One that is on its way is awaited and then asked for once more: to ask anew at once would, where news come faster
 * than answers, never show any, and let the server compute all of them.
 */
export function outdate(filters: QueryFilters): void {
  const queries = cache.getQueryCache().findAll(filters);
  const asked = new Set(queries.filter(({ state }) => state.fetchStatus !== "idle"));
  for (const query of asked) during.add(query);
  void cache.invalidateQueries({ ...filters, predicate: (query) => queries.includes(query) && !asked.has(query) });
}

/** The same by routes. */
export function refetch(matches: (path: string, parameters: Parameters) => boolean): void {
  outdate({
    predicate: ({ queryKey }) => {
      const [, path, options] = queryKey as [string, string, { params?: Parameters } | undefined];
      return typeof path === "string" && matches(path, options?.params ?? {});
    },
  });
}

export interface Parameters {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
}

export function messageOf(error: unknown): string {
  return error instanceof Refused || error instanceof Error ? error.message : String(error);
}
