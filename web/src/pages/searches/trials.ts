import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client";
import type { SearchView, TrialRow } from "./shown";

const PAGE = 1000;
/** So many trials are drawn at most. */
export const MOST = 5000;

/** The trials of a search, the best first, for plots: all of them, or as many as are drawn. */
export function useBestTrials(search: SearchView) {
  const { name } = search;
  return useQuery<readonly TrialRow[], Error>({
    queryKey: ["trials of a search", name, search.position],
    queryFn: async ({ signal }) => {
      const found: TrialRow[] = [];
      while (found.length < MOST) {
        const params = { path: { name }, query: { sort: "value" as const, offset: found.length, limit: PAGE } };
        const page = await call("get", "/v1/searches/{name}/trials/rows", { params }, signal);
        found.push(...page.trials);
        if (page.trials.length < PAGE) break;
      }
      return found;
    },
    placeholderData: (before) => before,
  });
}
