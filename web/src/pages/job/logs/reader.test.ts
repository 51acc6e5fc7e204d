import { expect, test } from "vitest";
import { appended, LineReader, prepended } from "./reader";

const bytes = (text: string) => new TextEncoder().encode(text);
const line = (offset: number, text = `${offset}`) => ({ offset, text, is_cut: false });

test("lines come with the byte where they begin, however the bytes are cut", () => {
  const reader = new LineReader(100);
  expect(reader.push(bytes("ab"))).toEqual([]);
  expect(reader.partial()).toEqual(line(100, "ab"));
  expect(reader.push(bytes("c\n\nde"))).toEqual([line(100, "abc"), line(104, "")]);
  expect([reader.offset, reader.partial()?.text]).toEqual([105, "de"]);
});

test("a character that is cut between two parts is whole", () => {
  const reader = new LineReader(0);
  const all = bytes("é🎉\n");
  expect(reader.push(all.slice(0, 3))).toEqual([]);
  expect(reader.push(all.slice(3))).toEqual([line(0, "é🎉")]);
});

test("what is no UTF-8 is seen, and counts as the bytes that it is", () => {
  const reader = new LineReader(0);
  expect(reader.push(new Uint8Array([0xff, 0x61, 10, 0x62, 10]))).toEqual([line(0, "\ufffda"), line(3, "b")]);
});

test("a line that never ends is given out in parts", () => {
  const reader = new LineReader(0);
  const [first] = reader.push(bytes("x".repeat(70_000)));
  expect([first?.text.length, first?.is_cut, reader.offset]).toEqual([65_536, true, 65_536]);
});

test("lines are joined, none twice", () => {
  expect(appended([line(0), line(5)], [line(5, "longer"), line(9)])).toEqual([line(0), line(5, "longer"), line(9)]);
  expect(prepended([line(5)], [line(0), line(5)])).toEqual([line(0), line(5)]);
});
