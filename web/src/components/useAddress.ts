import { useCallback } from "react";
import { useSearchParams } from "react-router";

/** What one has set on a page, in its address, so that a link shows the same. */
export interface Address {
  get: (name: string) => string | null;
  all: (name: string) => string[];
  /** Set some, and take away those that are null, empty, or an empty list. Paging starts anew. */
  set: (values: Readonly<Record<string, string | readonly string[] | null>>) => void;
}

export function useAddress(): Address {
  const [search, setSearch] = useSearchParams();
  const set = useCallback<Address["set"]>(
    (values) => {
      setSearch(
        (before) => {
          const next = new URLSearchParams(before);
          for (const [name, value] of Object.entries(values)) {
            next.delete(name);
            for (const one of typeof value === "string" ? [value] : (value ?? []))
              if (one !== "") next.append(name, one);
          }
          return next;
        },
        { replace: true },
      );
    },
    [setSearch],
  );
  return { get: (name) => search.get(name), all: (name) => search.getAll(name), set };
}
