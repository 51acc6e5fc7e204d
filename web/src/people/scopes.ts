import type { Schemas } from "../api/client";
import { text } from "../text";

const words = text.people.tokens;

/** What a token may do, in words. */
export function scopesOf(token: Pick<Schemas["TokenView"], "scopes" | "endpoints">): string {
  if (token.endpoints !== null) return words.only(token.endpoints.join(", "));
  if (token.scopes === null) return words.all;
  return token.scopes.map((scope) => text.people.permissions[scope] ?? scope).join("; ");
}

export const DAYS: readonly number[] = [7, 30, 90, 365];

/** When a token ends that is made now and lives so many days. */
export function endsAfter(days: number, now: number): number {
  return Math.floor(now + days * 86_400);
}
