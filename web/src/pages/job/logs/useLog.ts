/** The lines of one log: those around a place, earlier and later ones when they are looked at, new ones as they come. */
import { useCallback, useEffect, useRef, useState } from "react";
import { messageOf } from "../../../api/cache";
import { ask, call } from "../../../api/client";
import { addressOf } from "../../../api/place";
import { appended, LineReader, type PlacedLine, prepended } from "./reader";

const ROUTE = "/v1/jobs/{job_id}/logs/{task_id}/{stream}/lines";
const PART = 500;
const AGAIN_MS = 2000;
const SHOW_EVERY_MS = 120;

export interface LogPlace {
  job: string;
  task: string;
  stream: string;
}

export interface LogState {
  lines: readonly PlacedLine[];
  /** The line that has no end yet. */
  partial: PlacedLine | null;
  /** The first byte that is known, and the one after the last. */
  start: number;
  end: number;
  numBytes: number;
}

/**
 * @param at the byte of the line to look at; null: the end
 * @param follows whether new lines are shown as they come
 */
export function useLog({ job, task, stream }: LogPlace, at: number | null, follows: boolean) {
  const [state, setState] = useState<LogState | null>(null);
  const [error, setError] = useState<unknown>(null);
  const busy = useRef(false);
  const part = useCallback(
    (query: { before?: number; offset?: number }, signal?: AbortSignal) => {
      const path = { job_id: job, task_id: task, stream };
      return call("get", ROUTE, { params: { path, query: { ...query, lines: PART } } }, signal);
    },
    [job, task, stream],
  );

  useEffect(() => {
    const abort = new AbortController();
    setState(null);
    setError(null);
    const load = async () => {
      const first = await part(at === null ? {} : { offset: at }, abort.signal);
      const before = at === null || at === 0 ? null : await part({ before: at }, abort.signal);
      setState({
        lines: before === null ? first.lines : appended(before.lines, first.lines),
        partial: null,
        start: before?.start ?? first.start,
        end: first.end,
        numBytes: first.num_bytes,
      });
    };
    load().catch((problem: unknown) => !abort.signal.aborted && setError(problem));
    return () => abort.abort();
  }, [part, at]);

  const more = useCallback(
    async (query: { before?: number; offset?: number }) => {
      if (busy.current) return;
      busy.current = true;
      try {
        const found = await part(query);
        setState((known) => {
          if (known === null) return known;
          if (query.before !== undefined) {
            return { ...known, lines: prepended(known.lines, found.lines), start: found.start };
          }
          const end = Math.max(known.end, found.end);
          return { ...known, lines: appended(known.lines, found.lines), end, numBytes: found.num_bytes };
        });
      } catch {
        // it is asked for again when one looks there again
      } finally {
        busy.current = false;
      }
    },
    [part],
  );
  const known = useRef(state);
  known.current = state;
  const earlier = useCallback(() => {
    const shown = known.current;
    if (shown !== null && shown.start > 0) void more({ before: shown.start });
  }, [more]);
  const later = useCallback(() => {
    const shown = known.current;
    if (shown !== null && shown.end < shown.numBytes) void more({ offset: shown.end });
  }, [more]);

  const isReady = state !== null;
  const isAtEnd = state !== null && state.end >= state.numBytes;
  const broken = useFollow({ job, task, stream }, follows && isReady && isAtEnd, known, setState);
  return { state, error: error === null ? null : messageOf(error), earlier, later, broken };
}

/** Add new lines as they come, while the page is looked at. Tells whether the stream broke off. */
function useFollow(
  { job, task, stream }: LogPlace,
  follows: boolean,
  known: { current: LogState | null },
  setState: (change: (before: LogState | null) => LogState | null) => void,
): boolean {
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    if (!follows) return;
    let abort = new AbortController();
    let timer: number | null = null;
    const path = `/v1/jobs/${encodeURIComponent(job)}/logs/${encodeURIComponent(task)}/${encodeURIComponent(stream)}`;
    const read = async (signal: AbortSignal): Promise<void> => {
      const from = known.current?.partial?.offset ?? known.current?.end ?? 0;
      const response = await ask(addressOf(`${path}?follow=true&offset=${from}`), { signal });
      setBroken(false);
      await take(response, new LineReader(from), setState);
    };
    const run = () => {
      if (document.visibilityState === "hidden") return;
      abort = new AbortController();
      const { signal } = abort;
      read(signal).catch(() => {
        if (signal.aborted) return;
        setBroken(true);
        timer = window.setTimeout(run, AGAIN_MS);
      });
    };
    const look = () => {
      if (timer !== null) window.clearTimeout(timer);
      abort.abort();
      run();
    };
    run();
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      if (timer !== null) window.clearTimeout(timer);
      abort.abort();
    };
  }, [follows, job, task, stream, known, setState]);
  return broken;
}

/** Read a stream to its end; lines that come close together are shown together. */
async function take(
  response: Response,
  reader: LineReader,
  setState: (change: (before: LogState | null) => LogState | null) => void,
): Promise<void> {
  const body = response.body?.getReader();
  if (body === undefined) return;
  let due: PlacedLine[] = [];
  let timer: number | null = null;
  const show = () => {
    timer = null;
    const newer = due;
    due = [];
    const [partial, end] = [reader.partial(), reader.offset];
    setState((before) =>
      before === null
        ? before
        : { ...before, lines: appended(before.lines, newer), partial, end, numBytes: Math.max(end, before.numBytes) },
    );
  };
  for (;;) {
    const { done, value } = await body.read();
    if (value !== undefined) due.push(...reader.push(value));
    if (done) break;
    timer ??= window.setTimeout(show, SHOW_EVERY_MS);
  }
  if (timer !== null) window.clearTimeout(timer);
  show();
}
