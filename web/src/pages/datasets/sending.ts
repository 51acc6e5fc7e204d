/**
 * An upload that goes on whatever page is looked at: in chunks, each with its SHA-256, from where the server says that
 * the next one begins. It waits for a server that is away, it can be paused, and it takes up one that was begun before
 * a reload, if the same files are chosen again.
 */
import { waitBefore } from "../../api/backoff";
import { messageOf } from "../../api/cache";
import type { Schemas } from "../../api/client";
import { Refused, Unreachable } from "../../api/problem";
import { base64, sha256 } from "../../files/sha256";
import { type Content, digestIn, fingerprintOf } from "./content";

type Upload = Schemas["Upload"];

const CHUNK_BYTES = 8 * 1024 ** 2;

/** The routes that an upload needs. */
export interface Wire {
  uploads: () => Promise<Schemas["UploadPage"]>;
  begin: (request: Schemas["UploadRequest"]) => Promise<Upload>;
  show: (id: string) => Promise<Upload>;
  put: (chunk: Chunk, signal: AbortSignal) => Promise<Upload>;
  /** Wait; for a server that is away. */
  wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface Chunk {
  id: string;
  offset: number;
  bytes: Blob;
  /** SHA-256, in base64. */
  digest: string;
  onProgress: (sent: number) => void;
}

/** `waiting`: for a server that is away. `sent`: all bytes are there. */
export type SendingState = "sending" | "waiting" | "paused" | "failed" | "sent";

export interface Sent {
  state: SendingState;
  /** Bytes that are safe, or on their way. */
  numSent: number;
  numBytes: number;
  /** Bytes that had been sent before. */
  resumedAt: number;
  uploadId: string | null;
  error: string | null;
}

export class Sending {
  readonly name: string;
  #sent: Sent;
  #abort: AbortController | null = null;
  readonly #content: Content;
  readonly #wire: Wire;
  readonly #watchers = new Set<() => void>();

  constructor(name: string, content: Content, wire: Wire) {
    this.name = name;
    this.#content = content;
    this.#wire = wire;
    this.#sent = {
      state: "paused",
      numSent: 0,
      numBytes: content.blob.size,
      resumedAt: 0,
      uploadId: null,
      error: null,
    };
  }

  get digest(): string {
    return this.#content.digest;
  }

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  readonly sent = (): Sent => this.#sent;

  /** Send until all is there; return the id of the upload, or null if it was paused or has failed. */
  async run(): Promise<string | null> {
    if (this.#abort !== null) return null;
    const abort = new AbortController();
    this.#abort = abort;
    this.#set({ state: "sending", error: null });
    try {
      const id = await this.#sendAll(abort.signal);
      this.#set({ state: "sent" });
      return id;
    } catch (error) {
      if (abort.signal.aborted) this.#set({ state: "paused" });
      else this.#set({ state: "failed", error: wordsOf(error) });
      return null;
    } finally {
      this.#abort = null;
    }
  }

  pause(): void {
    this.#abort?.abort();
  }

  async #sendAll(signal: AbortSignal): Promise<string> {
    let upload = await this.#patiently(signal, () => this.#find());
    this.#set({ uploadId: upload.id, numSent: upload.offset ?? 0, resumedAt: upload.offset ?? 0 });
    while ((upload.offset ?? 0) < upload.num_bytes) {
      const { id } = upload;
      upload = await this.#patiently(signal, async (again) =>
        again ? this.#wire.show(id) : this.#put(upload, signal),
      );
      this.#set({ numSent: upload.offset ?? 0, state: "sending" });
    }
    return upload.id;
  }

  /** What was begun for these files, or a new one. */
  async #find(): Promise<Upload> {
    const { uploads, max_chunk_bytes } = await this.#wire.uploads();
    this.#chunkBytes = Math.min(CHUNK_BYTES, max_chunk_bytes);
    const numBytes = this.#content.blob.size;
    const begun = uploads.find(
      (upload) =>
        upload.num_bytes === numBytes && !upload.taken_by && digestIn(upload.fingerprint ?? "") === this.digest,
    );
    const fingerprint = fingerprintOf(this.name, this.digest);
    return begun ?? this.#wire.begin({ num_bytes: numBytes, fingerprint });
  }

  #chunkBytes = CHUNK_BYTES;

  async #put(upload: Upload, signal: AbortSignal): Promise<Upload> {
    const offset = upload.offset ?? 0;
    const bytes = new Uint8Array(await this.#content.blob.slice(offset, offset + this.#chunkBytes).arrayBuffer());
    const digest = base64(await sha256(bytes));
    signal.throwIfAborted();
    const onProgress = (sent: number) => this.#set({ numSent: offset + Math.min(sent, bytes.length) });
    try {
      return await this.#wire.put({ id: upload.id, offset, bytes: new Blob([bytes]), digest, onProgress }, signal);
    } catch (error) {
      // it had come after all, or somebody else sends the same
      if (error instanceof Refused && error.status === 409) return this.#wire.show(upload.id);
      throw error;
    }
  }

  /** Try until the server answers; `again` says that it did not before. */
  async #patiently(signal: AbortSignal, act: (again: boolean) => Promise<Upload>): Promise<Upload> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        signal.throwIfAborted();
        return await act(attempt > 0);
      } catch (error) {
        if (signal.aborted || !(error instanceof Unreachable)) throw error;
        this.#set({ state: "waiting" });
        await this.#wire.wait(waitBefore(attempt, Math.random()), signal);
      }
    }
  }

  #set(change: Partial<Sent>): void {
    this.#sent = { ...this.#sent, ...change };
    for (const watcher of this.#watchers) watcher();
  }
}

function wordsOf(error: unknown): string {
  return messageOf(error);
}
