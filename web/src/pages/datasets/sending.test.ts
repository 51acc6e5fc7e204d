import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { Refused, Unreachable } from "../../api/problem";
import { gather } from "../../files/chosen";
import { contentOf, digestIn, nameFrom, nameIn } from "./content";
import { type Chunk, Sending, type Wire } from "./sending";

/** A server's uploads, in memory. */
class Server implements Wire {
  kept: { upload: Schemas["Upload"]; bytes: number[] }[] = [];
  maxChunk = 4;
  /** What happens at the next chunks, before or after they are written. */
  faults: ("away" | "lost answer" | "refused" | null)[] = [];
  waits = 0;

  uploads = async () => ({ uploads: this.kept.map(({ upload }) => ({ ...upload })), max_chunk_bytes: this.maxChunk });
  begin = async (request: Schemas["UploadRequest"]) => {
    const kept = { owner: "ada", created_at: 0, expires_at: 0, offset: 0, taken_by: "" };
    const upload = { id: `u${this.kept.length}`, ...kept, ...request, sha256: "" };
    this.kept.push({ upload: { ...upload }, bytes: [] });
    return upload;
  };
  show = async (id: string) => ({ ...this.#of(id).upload });
  put = async ({ id, offset, bytes, digest, onProgress }: Chunk) => {
    const fault = this.faults.shift() ?? null;
    if (fault === "away") throw new Unreachable();
    if (fault === "refused") throw new Refused(507, "the disk is full; free some room");
    const one = this.#of(id);
    if (offset !== one.upload.offset) throw new Refused(409, `the next chunk begins at ${one.upload.offset}`);
    const sent = new Uint8Array(await bytes.arrayBuffer());
    expect(createHash("sha256").update(sent).digest("base64")).toBe(digest);
    onProgress(sent.length);
    one.bytes.push(...sent);
    one.upload.offset = one.bytes.length;
    if (fault === "lost answer") throw new Unreachable();
    return { ...one.upload };
  };
  wait = async () => {
    this.waits += 1;
  };

  #of(id: string) {
    const found = this.kept.find(({ upload }) => upload.id === id);
    if (found === undefined) throw new Refused(404, "gone");
    return found;
  }
}

async function content(text = "0123456789", lastModified = 5) {
  const file = new File([text], "t.csv", { lastModified });
  const chosen = await gather([{ path: "t.csv", file }], false);
  if (chosen === null) throw new Error("nothing was chosen");
  return contentOf(chosen);
}

const textOf = (server: Server, index = 0) => String.fromCharCode(...(server.kept[index]?.bytes ?? []));

test("all bytes come in order, in chunks as large as the server takes", async () => {
  const server = new Server();
  const sending = new Sending("t", await content(), server);
  expect(await sending.run()).toBe("u0");
  expect(textOf(server)).toBe("0123456789");
  expect(sending.sent()).toMatchObject({ state: "sent", numSent: 10, numBytes: 10, error: null });
});

test("a server that is away costs a chunk at most, and nothing is sent twice", async () => {
  const server = new Server();
  server.faults = [null, "away", "lost answer"];
  expect(await new Sending("t", await content(), server).run()).toBe("u0");
  expect(textOf(server)).toBe("0123456789");
  expect(server.waits).toBe(2);
});

test("the same files go on where they were after a reload, others begin anew", async () => {
  const server = new Server();
  server.faults = [null, "refused"];
  const first = new Sending("t", await content(), server);
  expect(await first.run()).toBeNull();
  expect(first.sent()).toMatchObject({ state: "failed", error: "the disk is full; free some room", numSent: 4 });
  const second = new Sending("another-name", await content(), server);
  expect(await second.run()).toBe("u0");
  expect(second.sent().resumedAt).toBe(4);
  expect(textOf(server)).toBe("0123456789");
  expect(await new Sending("t", await content("abcdefghij", 6), server).run()).toBe("u1");
});

test("an upload that another data set is made of is not taken", async () => {
  const server = new Server();
  await new Sending("t", await content(), server).run();
  for (const { upload } of server.kept) upload.taken_by = "t";
  expect(await new Sending("t", await content(), server).run()).toBe("u1");
});

test("what is paused goes on", async () => {
  const server = new Server();
  const sending = new Sending("t", await content(), server);
  const stop = sending.watch(() => {
    if (sending.sent().numSent > 4) sending.pause();
  });
  expect(await sending.run()).toBeNull();
  expect(sending.sent().state).toBe("paused");
  stop();
  expect(await sending.run()).toBe("u0");
  expect(textOf(server)).toBe("0123456789");
});

test("a table or an archive alone is sent as it is, all else as a tar", async () => {
  expect((await content()).blob.size).toBe(10);
  const chosen = await gather([{ path: "d/a.txt", file: new File(["x"], "a.txt") }], false);
  if (chosen === null) throw new Error("nothing was chosen");
  expect(contentOf(chosen).blob.size % 512).toBe(0);
  expect(nameFrom({ ...chosen, name: "My pictures (2)" })).toBe("My-pictures-2");
  expect(nameFrom({ ...chosen, isFolder: false, name: "houses.tar.gz" })).toBe("houses");
});

test("a fingerprint says which data set and which files; others say nothing", () => {
  expect([nameIn("console cifar abc"), digestIn("console cifar abc")]).toEqual(["cifar", "abc"]);
  expect([nameIn("0f".repeat(32)), digestIn("")]).toEqual([null, null]);
});
