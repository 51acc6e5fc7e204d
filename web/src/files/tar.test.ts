import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { cleanName, tarGzOf, tarOf } from "./tar";

const LONG = `${"folder/".repeat(30)}${"n".repeat(120)}.py`;
const FILES = [
  { name: "train.py", content: new Blob(["print('a')\n"]) },
  { name: "data/مرحبا 🙂.txt", content: new Blob(["x".repeat(1500)]) },
  { name: LONG, content: new Blob([new Uint8Array([0, 255, 128])]) },
  { name: "data/empty", content: new Blob([]) },
  { name: "data/block", content: new Blob(["b".repeat(512)]) },
];

async function bytesOf(blob: Blob): Promise<Uint8Array> {
  return new Uint8Array(await blob.arrayBuffer());
}

test("tar unpacks what was packed, whatever its name and length", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tar-"));
  try {
    const archive = join(folder, "it.tar");
    writeFileSync(archive, await bytesOf(tarOf(FILES)));
    execFileSync("tar", ["-xf", archive, "-C", folder]);
    for (const file of FILES) {
      expect(new Uint8Array(readFileSync(join(folder, file.name)))).toEqual(await bytesOf(file.content));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the same files give the same bytes in whatever order they come", async () => {
  expect(await bytesOf(tarOf([...FILES].reverse()))).toEqual(await bytesOf(tarOf(FILES)));
});

test("what is packed is the same tar, compressed", async () => {
  const packed = await bytesOf(await tarGzOf(FILES));
  expect(new Uint8Array(gunzipSync(packed))).toEqual(await bytesOf(tarOf(FILES)));
});

test.each([
  ["a/b.py", "a/b.py"],
  ["/a//./b.py", "a/b.py"],
  ["../b.py", null],
  ["a/../../b.py", null],
  ["a/..", null],
  ["", null],
  ["./", null],
  ["a\0b", null],
  ["a/..b/c", "a/..b/c"],
])("%j is called %j in an archive", (path, name) => {
  expect(cleanName(path)).toBe(name);
});
