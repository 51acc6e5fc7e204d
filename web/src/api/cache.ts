import { QueryClient } from "@tanstack/react-query";
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

/** Ask again for every answer of these routes that is shown, and for the others when they are shown next. */
export function refetch(matches: (path: string, parameters: Parameters) => boolean): void {
  void cache.invalidateQueries({
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
