import { useState } from "react";
import { call } from "../../api/client";
import { type ServerEvent, useEvents } from "../../api/live";
import { Refused } from "../../api/problem";
import { useGet } from "../../api/queries";
import { type Filter, fits, merge } from "./list";

const PAGE = 200;
/** More than that came while one looked: the list begins anew, so that it does not grow for ever. */
const MOST_FRESH = 1_000;

/** Events that fit, as they come. While `paused` new ones are only counted. */
export function useEventList(filter: Filter, paused: boolean) {
  const query = { order: "newest" as const, kind: [...filter.kinds], job_id: filter.job, limit: PAGE };
  const first = useGet("/v1/events", { params: { query } });
  const [older, setOlder] = useState<readonly ServerEvent[]>([]);
  const [next, setNext] = useState<number | null | undefined>(undefined);
  const [fresh, setFresh] = useState<readonly ServerEvent[]>([]);
  const [problem, setProblem] = useState<Refused | null>(null);
  const [loading, setLoading] = useState(false);
  useEvents((events) => {
    const fitting = events.filter((event) => fits(event, filter));
    if (fitting.length === 0) return;
    if (!paused && fresh.length + fitting.length > MOST_FRESH) {
      setFresh([]);
      setOlder([]);
      setNext(undefined);
      void first.refetch();
      return;
    }
    setFresh((before) => [...before, ...fitting].slice(-MOST_FRESH));
  });
  const from = next === undefined ? first.data?.next : next;
  const loadOlder = async () => {
    if (from == null) return;
    setLoading(true);
    setProblem(null);
    try {
      const page = await call("get", "/v1/events", { params: { query: { ...query, before: from } } });
      setOlder((before) => [...before, ...page.events]);
      setNext(page.next ?? null);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setProblem(error);
    } finally {
      setLoading(false);
    }
  };
  const known = (first.data?.events ?? []).filter((event) => fits(event, filter));
  const newest = known[0]?.seq ?? 0;
  const [pausedAt, setPausedAt] = useState<number | null>(null);
  const all = merge(
    fresh,
    known,
    older.filter((event) => fits(event, filter)),
  );
  const last = all[0]?.seq ?? newest;
  if (paused && pausedAt === null) setPausedAt(last);
  if (!paused && pausedAt !== null) setPausedAt(null);
  const shown = paused && pausedAt !== null ? all.filter((event) => event.seq <= pausedAt) : all;
  return {
    first,
    events: shown,
    numNew: all.length - shown.length,
    hasOlder: from != null,
    loadOlder,
    loading,
    problem,
  };
}
