/**
 * What happens on the server, as it happens: one stream of events while this page is looked at, from the last event
 * that was seen. It connects again by itself for ever. A page that nobody looks at has none: browsers allow six
 * connections to a server for all their tabs together.
 */
import { useEffect, useRef, useSyncExternalStore } from "react";
import { waitBefore } from "./backoff";
import { cache } from "./cache";
import { type AnswerOf, ask, type Schemas } from "./client";
import { EventParser } from "./event_stream";
import { Invalidation } from "./invalidation";
import { addressOf } from "./place";
import { Refused } from "./problem";

export type ServerEvent = Schemas["Event"];
/** `live`: events come. `reconnecting`: they did a moment ago. `offline`: the server does not answer. `off`: nobody asked. */
export type Connection = "off" | "live" | "reconnecting" | "offline";

const SILENCE_MS = 35_000;
const FAR_BEHIND = 2_000;

type Listener = (events: readonly ServerEvent[]) => void;

export class Live {
  #connection: Connection = "off";
  #last: number | null = null;
  #attempt = 0;
  #abort: AbortController | null = null;
  #timer: number | null = null;
  #heard = 0;
  #running = false;
  readonly #watchers = new Set<() => void>();
  readonly #listeners = new Set<Listener>();
  readonly #invalidation = new Invalidation();

  /** Begin to follow; `after` is the number of the last event that what is shown already knows. */
  start(after: number | null): void {
    if (this.#running) return;
    this.#running = true;
    this.#last = after;
    document.addEventListener("visibilitychange", this.#look);
    window.addEventListener("online", this.#look);
    this.#look();
  }

  stop(): void {
    this.#running = false;
    document.removeEventListener("visibilitychange", this.#look);
    window.removeEventListener("online", this.#look);
    this.#close();
    this.#become("off");
  }

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  readonly connection = (): Connection => this.#connection;

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #become(connection: Connection): void {
    if (connection === this.#connection) return;
    this.#connection = connection;
    for (const watcher of this.#watchers) watcher();
  }

  #close(): void {
    this.#abort?.abort();
    this.#abort = null;
    if (this.#timer !== null) window.clearTimeout(this.#timer);
    this.#timer = null;
  }

  readonly #look = (): void => {
    if (!this.#running) return;
    if (document.visibilityState === "hidden") {
      this.#close();
      return;
    }
    if (this.#abort === null) {
      this.#close();
      void this.#connect();
    }
  };

  #again(): void {
    if (!this.#running || document.visibilityState === "hidden") return;
    this.#timer = window.setTimeout(
      () => {
        this.#timer = null;
        void this.#connect();
      },
      waitBefore(this.#attempt++, Math.random()),
    );
  }

  async #connect(): Promise<void> {
    const abort = new AbortController();
    this.#abort = abort;
    const silence = window.setInterval(() => {
      if (Date.now() - this.#heard > SILENCE_MS) abort.abort("silence");
    }, 5_000);
    try {
      if (this.#last === null) this.#last = await newest(abort.signal);
      this.#heard = Date.now();
      const response = await ask(addressOf(`/v1/events/stream?after=${this.#last}`), { signal: abort.signal });
      this.#heard = Date.now();
      if (this.#attempt > 0) void cache.invalidateQueries(); // what happened meanwhile may be more than events tell
      this.#attempt = 0;
      this.#become("live");
      await this.#read(response);
      this.#become("reconnecting");
    } catch (error) {
      if (this.#abort !== abort) return; // closed by us
      if (error instanceof Refused && error.status === 401) {
        this.stop();
        return;
      }
      this.#become(this.#connection === "live" ? "reconnecting" : "offline");
    } finally {
      window.clearInterval(silence);
      if (this.#abort === abort) this.#abort = null;
    }
    this.#again();
  }

  async #read(response: Response): Promise<void> {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (reader === undefined) return;
    const parser = new EventParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#heard = Date.now();
      this.#take(parser.push(value).map((sent) => JSON.parse(sent.data) as ServerEvent));
    }
  }

  #take(events: readonly ServerEvent[]): void {
    const newest = events.at(-1);
    if (newest === undefined) return;
    const missed = newest.seq - (this.#last ?? newest.seq);
    this.#last = newest.seq;
    for (const listener of this.#listeners) listener(events);
    if (missed > FAR_BEHIND || events.some((event) => event.kind === "server.started")) void cache.invalidateQueries();
    else this.#invalidation.add(events);
  }
}

async function newest(signal: AbortSignal): Promise<number> {
  const response = await ask(addressOf("/v1/overview"), { signal });
  return ((await response.json()) as AnswerOf<"/v1/overview", "get">).last_seq;
}

export const live = new Live();

export function useConnection(): Connection {
  return useSyncExternalStore(live.watch, live.connection);
}

/** Call `listener` with the events that come while the component is shown. */
export function useEvents(listener: Listener): void {
  const newest = useRef(listener);
  useEffect(() => {
    newest.current = listener;
  });
  useEffect(() => live.listen((events) => newest.current(events)), []);
}
