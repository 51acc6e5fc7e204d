import { useEffect, useRef } from "react";
import { cache } from "../../api/cache";
import type { Refused } from "../../api/problem";
import { keyOf, useChange, useGet } from "../../api/queries";
import { readKept, type View, withKept } from "./saved";

/** Where an earlier console kept views, in this browser alone. */
const KEPT = "pliant-job-views";
const KEY = keyOf("/v1/me/views", {});

/** One's own views on the server. What this browser has kept of an earlier console is moved there, once. */
export function useSavedViews(): {
  views: readonly View[];
  save: (views: View[]) => void;
  isBusy: boolean;
  error: Refused | null;
} {
  const found = useGet("/v1/me/views", {});
  const change = useChange("put", "/v1/me/views", {
    onSuccess: (saved) => cache.setQueryData(KEY, saved),
    onError: () => void cache.invalidateQueries({ queryKey: KEY }),
  });
  const { mutate } = change;
  const revision = found.data?.revision;
  const views = found.data?.views ?? [];
  const save = (next: View[], onSaved?: () => void) => {
    if (revision === undefined) return;
    mutate(
      { params: { header: { "if-match": `"${revision}"` } }, body: { views: next } },
      { ...(onSaved && { onSuccess: onSaved }) },
    );
  };
  const moved = useRef(false);
  useEffect(() => {
    if (revision === undefined || moved.current) return;
    moved.current = true;
    const kept = readKept(localStorage.getItem(KEPT));
    if (kept.length > 0) save(withKept(views, kept), () => localStorage.removeItem(KEPT));
  });
  return { views, save: (next) => save(next), isBusy: found.isPending || change.isPending, error: change.error };
}
