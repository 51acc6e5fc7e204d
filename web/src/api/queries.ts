/** The routes as React sees them: what is shown of the server (`useGet`), and what changes it (`useChange`). */
import { type UseMutationResult, type UseQueryResult, useMutation, useQuery } from "@tanstack/react-query";
import { type AnswerOf, ask, call, type InitOf, type Method, type PathOf } from "./client";
import { addressOf } from "./place";
import type { Refused } from "./problem";

interface QueryOptions<A> {
  enabled?: boolean;
  /** Ask again every so many milliseconds while it is looked at: only for what no event tells of. It may hang on the answer. */
  refetchInterval?: number | false | ((answer: A | undefined) => number | false);
  /** Keep showing the answer to the parameters before while the next one is on its way. */
  keepPrevious?: boolean;
  retry?: false;
  /** Ask again whenever it is shown: for what no event tells of. */
  fresh?: boolean;
}

/** The answer of a route, kept by its path and parameters until an event says that it is out of date. */
export function useGet<P extends PathOf<"get">>(
  path: P,
  init: InitOf<P, "get">,
  { enabled, refetchInterval, keepPrevious, retry, fresh }: QueryOptions<AnswerOf<P, "get">> = {},
): UseQueryResult<AnswerOf<P, "get">, Refused> {
  return useQuery<AnswerOf<P, "get">, Refused>({
    queryKey: keyOf(path, init),
    queryFn: ({ signal }) => call("get", path, init, signal),
    ...(enabled !== undefined && { enabled }),
    ...(refetchInterval !== undefined && { refetchInterval: asked(refetchInterval) }),
    ...(keepPrevious && { placeholderData: (before: AnswerOf<P, "get"> | undefined) => before }),
    ...(retry !== undefined && { retry }),
    ...(fresh && { staleTime: 0 }),
  } as Parameters<typeof useQuery<AnswerOf<P, "get">, Refused>>[0]);
}

/** An interval as the library has it. */
function asked<A>(interval: number | false | ((answer: A | undefined) => number | false)) {
  if (typeof interval !== "function") return interval;
  return (query: { state: { data: A | undefined } }) => interval(query.state.data);
}

/** Under what the answer of a route is kept. */
export function keyOf<P extends PathOf<"get">>(path: P, init: InitOf<P, "get">): readonly unknown[] {
  return ["get", path, init ?? {}];
}

/** What a change would come to, from a route that changes nothing; asked again when `init` changes, or the pool does. */
export function usePreview<P extends PathOf<"post">>(
  path: P,
  init: InitOf<P, "post">,
  { enabled = true }: { enabled?: boolean } = {},
): UseQueryResult<AnswerOf<P, "post">, Refused> {
  return useQuery<AnswerOf<P, "post">, Refused>({
    queryKey: ["post", path, init ?? {}],
    queryFn: ({ signal }) => call("post", path, init, signal),
    placeholderData: (before: AnswerOf<P, "post"> | undefined) => before,
    staleTime: 0,
    gcTime: 10_000,
    retry: false,
    enabled,
  } as Parameters<typeof useQuery<AnswerOf<P, "post">, Refused>>[0]);
}

interface ChangeOptions<A, I> {
  onSuccess?: (answer: A, init: I) => void;
  onError?: (error: Refused) => void;
  onSettled?: () => void;
}

/** A change of the server: `change.mutate({ params, body })`. What it makes out of date, the server's events say. */
export function useChange<M extends Exclude<Method, "get">, P extends PathOf<M>>(
  method: M,
  path: P,
  options: ChangeOptions<AnswerOf<P, M>, InitOf<P, M>> = {},
): UseMutationResult<AnswerOf<P, M>, Refused, InitOf<P, M>> {
  return useMutation<AnswerOf<P, M>, Refused, InitOf<P, M>>({
    mutationFn: (init) => call(method, path, init),
    ...(options.onSuccess && { onSuccess: options.onSuccess }),
    ...(options.onError && { onError: options.onError }),
    ...(options.onSettled && { onSettled: options.onSettled }),
  });
}

/** The text of a route that answers plain text, kept like other answers. `address` is the route with its parameters in. */
export function useText<P extends PathOf<"get">>(
  path: P,
  init: InitOf<P, "get">,
  address: string,
  { enabled, refetchInterval }: Pick<QueryOptions<string>, "enabled" | "refetchInterval"> = {},
): UseQueryResult<string, Refused> {
  return useQuery<string, Refused>({
    queryKey: keyOf(path, init),
    queryFn: async ({ signal }) => (await ask(addressOf(address), { signal })).text(),
    ...(enabled !== undefined && { enabled }),
    ...(refetchInterval !== undefined && { refetchInterval: asked(refetchInterval) }),
  });
}
