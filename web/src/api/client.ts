/**
 * The routes of the server, typed by its own description. Every request carries the cookie of the session and the
 * header that no other site can send; every refusal is thrown as `Refused`, in the server's words.
 */
import createFetchClient, { type MaybeOptionalInit } from "openapi-fetch";
import { addressOf, PREFIX } from "./place";
import { problemOf, Unreachable } from "./problem";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Method = "get" | "post" | "put" | "patch" | "delete";
/** The routes that have a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: Record<string, unknown> } ? P : never;
}[keyof paths];
export type OperationOf<P extends keyof paths, M extends Method> = paths[P] extends {
  [K in M]: infer O extends Record<string | number, unknown>;
}
  ? O
  : never;
/** What a route is asked with: parameters of its path and query, and a body. */
export type InitOf<P extends keyof paths, M extends Method> = MaybeOptionalInit<paths[P], M & keyof paths[P]>;
/** What a route answers. */
export type AnswerOf<P extends keyof paths, M extends Method> =
  OperationOf<P, M> extends {
    responses: infer R;
  }
    ? { [S in keyof R]: R[S] extends { content: { "application/json": infer A } } ? A : never }[keyof R]
    : never;

export const CONSOLE_HEADER = { "X-Pliant-Console": "1" };

/** Called when the server says that nobody is logged on. */
let whenLoggedOff: () => void = () => undefined;

export function onLoggedOff(call: () => void): void {
  whenLoggedOff = call;
}

/** Fetch a route; throws `Refused`. */
export async function ask(input: Request | string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(input, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (response.ok) return response;
  return refuse(response, new URL(response.url).pathname);
}

/** Throw what an answer refuses; the session is over if it says so. */
export async function refuse(response: Response, path: string): Promise<never> {
  const problem = await problemOf(response);
  if (response.status === 401 && !path.endsWith("/v1/logon") && !path.endsWith("/v1/logon/link")) whenLoggedOff();
  throw problem;
}

const client = createFetchClient<paths>({
  baseUrl: PREFIX,
  headers: CONSOLE_HEADER,
  fetch: (request) => ask(request),
  querySerializer: { array: { style: "form", explode: true } },
});

/** Send a request to a route and return its answer; throws `Refused`. */
export async function call<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  init: InitOf<P, M>,
  signal?: AbortSignal,
): Promise<AnswerOf<P, M>> {
  // openapi-fetch types each method by itself; here the method is a value
  const send = client.request as unknown as (m: string, p: string, i: object) => Promise<{ data: AnswerOf<P, M> }>;
  const { data } = await send(method, path as string, { ...(init as object), signal });
  return data;
}

/** The address of a download, for a link. */
export function downloadOf(path: string, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query).toString();
  return addressOf(search === "" ? path : `${path}?${search}`);
}
