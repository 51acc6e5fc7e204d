import { useQueries } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import type { Refused } from "../api/problem";

export const PAGE = 100;

interface Part<T> {
  rows: readonly T[];
  total: number;
}

/**
 * The rows of a list that the server pages: those that are looked at are asked for, the others are holes.
 *
 * @param key what the list is; another one begins anew
 * @param fetchPage asks for rows from an offset on
 */
export function usePages<T>(
  key: readonly unknown[],
  fetchPage: (offset: number, signal: AbortSignal) => Promise<Part<T>>,
) {
  const [[first, last], setRange] = useState<readonly [number, number]>([0, 0]);
  const pages: number[] = [];
  for (let page = first; page <= last; page += 1) pages.push(page);
  const answers = useQueries({
    queries: pages.map((page) => ({
      queryKey: [...key, { offset: page * PAGE }],
      queryFn: ({ signal }: { signal: AbortSignal }) => fetchPage(page * PAGE, signal),
      placeholderData: (before: Part<T> | undefined) => before,
    })),
  });
  const [total, setTotal] = useState<number | null>(null);
  const known = answers.find((answer) => answer.data !== undefined && !answer.isPlaceholderData)?.data?.total ?? null;
  if (known !== null && known !== total) setTotal(known);
  const data = answers.map((answer) => (answer.isPlaceholderData ? undefined : answer.data));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the answers themselves are new at every render
  const rows = useMemo(() => {
    const all: (T | undefined)[] = Array.from({ length: total ?? 0 });
    pages.forEach((page, index) => {
      data[index]?.rows.forEach((row, place) => {
        all[page * PAGE + place] = row;
      });
    });
    all.length = total ?? 0;
    return all;
  }, [total, pages.join(), ...data]);
  const error = answers.find((answer) => answer.error !== null)?.error as Refused | undefined;
  const onRange = useCallback((from: number, to: number) => {
    const [first, last] = [Math.floor(from / PAGE), Math.floor(to / PAGE)]; // within a page nothing is to be drawn again
    setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
  }, []);
  return { rows, total, error: error ?? null, onRange };
}
