import { useSyncExternalStore } from "react";
import { age, duration, isoTime, NONE, time } from "../format/format";

const watchers = new Set<() => void>();
let now = Math.floor(Date.now() / 1000);
let timer: number | null = null;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= window.setInterval(() => {
    now = Math.floor(Date.now() / 1000);
    for (const call of watchers) call();
  }, 1000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0 || timer === null) return;
    window.clearInterval(timer);
    timer = null;
  };
}

/** Seconds since the epoch, once a second; one timer for all who ask. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => now);
}

/** A time of day; its date, in UTC, in the tooltip. */
export function Time({ at }: { at: number | null | undefined }) {
  if (at == null) return <span>{NONE}</span>;
  return (
    <time dateTime={isoTime(at)} title={isoTime(at)}>
      {time(at)}
    </time>
  );
}

/** How long ago something was, which goes on while one looks; or how long it took, if it is over. */
export function Age({ since, until }: { since: number | null | undefined; until?: number | null }) {
  const current = useNow();
  if (since == null) return <span>{NONE}</span>;
  return (
    <time dateTime={isoTime(since)} title={isoTime(since)}>
      {until == null ? age(current - since) : duration(until - since)}
    </time>
  );
}
