import { expect, test } from "vitest";
import { tarGzOf } from "./tar";
import { textOf, unpack } from "./untar";

const LONG = `${"folder/".repeat(30)}main.py`;

test("what was packed is unpacked, whatever its name and length", async () => {
  const files = [
    { name: "main.py", content: new Blob(["print(1)\n"]) },
    { name: "مرحبا 🙂.txt", content: new Blob(["x".repeat(1500)]) },
    { name: LONG, content: new Blob([new Uint8Array([0, 255])]) },
    { name: "empty", content: new Blob([]) },
  ];
  const found = await unpack(await tarGzOf(files));
  expect(found.map(({ path, content }) => [path, content.length])).toEqual([
    ["empty", 0],
    [LONG, 2],
    ["main.py", 9],
    ["مرحبا 🙂.txt", 1500],
  ]);
  expect(found.map(({ content }) => textOf(content)?.slice(0, 5) ?? null)).toEqual(["", null, "print", "xxxxx"]);
});
