import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { call, type Schemas } from "../../api/client";
import { Refused } from "../../api/problem";
import { searchesChanged } from "./changed";
import type { SearchView } from "./shown";

const TRIES = 5;

/**
 * Changes what people say of a search. Every decision of the search makes a revision, too, so a stale one alone says
 * nothing: what counts is whether somebody has changed the settings since they were shown. Then the server's refusal
 * is thrown, and the next try goes by what they are now.
 */
export function useSearchPatch(search: SearchView, onDone: () => void) {
  const known = useRef(search);
  return useMutation<SearchView, Refused, Schemas["SearchPatch"]>({
    mutationFn: async (body) => {
      const path = { name: search.name };
      for (let attempt = 1; ; attempt += 1) {
        try {
          const header = { "if-match": `"${known.current.revision}"` };
          return await call("patch", "/v1/searches/{name}", { params: { path, header }, body });
        } catch (error) {
          if (!(error instanceof Refused) || error.status !== 412) throw error;
          const before = known.current;
          known.current = await call("get", "/v1/searches/{name}", { params: { path } });
          const isSame = JSON.stringify(before.settings) === JSON.stringify(known.current.settings);
          if (!isSame || attempt === TRIES) throw error;
        }
      }
    },
    onSuccess: onDone,
    onSettled: searchesChanged,
  });
}
