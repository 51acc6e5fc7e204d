/** The uploads of this page of the browser: they go on while other pages of the console are looked at. */
import { useSyncExternalStore } from "react";
import { refetch } from "../../api/cache";
import { call, type Schemas } from "../../api/client";
import { send } from "../../api/send";
import type { Content } from "./content";
import { Sending, type Sent, type Wire } from "./sending";

export type Request = Omit<Schemas["DatasetRequest"], "source">;

const wire: Wire = {
  uploads: () => call("get", "/v1/uploads", {}),
  begin: (body) => call("post", "/v1/uploads", { body }),
  show: (id) => call("get", "/v1/uploads/{upload_id}", { params: { path: { upload_id: id } } }),
  put: ({ id, offset, bytes, digest, onProgress }, signal) =>
    send<Schemas["Upload"]>({
      method: "PUT",
      path: `/v1/uploads/${id}?offset=${offset}`,
      body: bytes,
      headers: { "Content-Type": "application/octet-stream", "Content-Digest": `sha-256=:${digest}:` },
      onProgress,
      signal,
    }),
  wait: (ms, signal) =>
    new Promise((go, stop) => {
      const timer = window.setTimeout(go, ms);
      signal.addEventListener("abort", () => {
        window.clearTimeout(timer);
        stop(signal.reason);
      });
    }),
};

const running = new Map<string, Sending>();
const watchers = new Set<() => void>();
let all: readonly Sending[] = [];

function changed(): void {
  all = [...running.values()];
  if (all.length > 0) window.addEventListener("beforeunload", warn);
  else window.removeEventListener("beforeunload", warn);
  for (const watcher of watchers) watcher();
}

/** Leaving now breaks an upload off. */
function warn(event: BeforeUnloadEvent): void {
  if (all.some((one) => ["sending", "waiting"].includes(one.sent().state))) event.preventDefault();
}

/** The upload for a data set that is, or was, sent from here. */
export function useSending(name: string): Sending | null {
  return useAll().find((one) => one.name === name) ?? null;
}

export function useAll(): readonly Sending[] {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => all,
  );
}

export function useSent(sending: Sending): Sent {
  return useSyncExternalStore(sending.watch, sending.sent);
}

/** Send what is not there yet, then import it; return the data set, or null if the upload was paused or has failed. */
export async function add(request: Request, content: Content): Promise<Schemas["Dataset"] | null> {
  const known = running.get(request.name);
  const sending = known?.digest === content.digest ? known : new Sending(request.name, content, wire);
  if (sending !== known) known?.pause();
  running.set(request.name, sending);
  changed();
  const id = await sending.run();
  if (id === null) return null;
  const dataset = await call("post", "/v1/datasets", { body: { ...request, source: { upload_id: id } } });
  forget(request.name);
  return dataset;
}

/** Stop an upload of this page, and let go of its files. What was sent stays on the server. */
export function forget(name: string): void {
  running.get(name)?.pause();
  running.delete(name);
  changed();
  refetch((path) => path === "/v1/uploads" || path === "/v1/datasets");
}
