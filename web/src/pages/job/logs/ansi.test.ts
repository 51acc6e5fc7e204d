import { expect, test } from "vitest";
import { MAX_LINE, piecesOf, plainOf } from "./ansi";

const E = "\u001b";
const shown = (line: string) => piecesOf(line).map(({ text, style }) => [text, style.colour]);

test("colours and styles are kept, and end where they are ended", () => {
  expect(shown(`${E}[31mred${E}[0m plain ${E}[1;92mbold`)).toEqual([
    ["red", 1],
    [" plain ", null],
    ["bold", 10],
  ]);
  expect(piecesOf(`${E}[1;3;4;9;7mx`)[0]?.style).toMatchObject({
    bold: true,
    italic: true,
    underline: true,
    struck: true,
    marked: true,
  });
  expect(shown(`a${E}[mb`)).toEqual([
    ["a", null],
    ["b", null],
  ]);
});

test("many colours become the nearest of sixteen", () => {
  expect(shown(`${E}[38;5;196mx${E}[38;2;0;160;0my${E}[38;5;244mz${E}[38;5;3mw`)).toEqual([
    ["x", 9],
    ["y", 2],
    ["z", 8],
    ["w", 3],
  ]);
});

test("a carriage return writes over what stood there; one at the end is the end of a line", () => {
  expect(plainOf("10 %\r50 %\r100 %")).toBe("100 %");
  expect(plainOf("longer\rab")).toBe("abnger");
  expect(plainOf("windows\r")).toBe("windows");
  expect(plainOf("ab\bc")).toBe("ac");
});

test("what a terminal would do otherwise is dropped: cursor, screen, title, links", () => {
  expect(plainOf(`a${E}[2J${E}[10;10H${E}[?25lb`)).toBe("ab");
  expect(plainOf(`${E}]8;;http://evil.example\u0007link${E}]8;;\u0007 ${E}]0;title${E}\\end`)).toBe("link end");
  expect(plainOf(`${E}Pq#0;2;0${E}\\x${E}(By${E}7z${E}c`)).toBe("xyz");
});

test("a sequence that never ends hides nothing", () => {
  expect(plainOf(`${E}]8;;the rest of it`)).toBe("8;;the rest of it");
  expect(plainOf(`a${E}`)).toBe("a\u241b");
  expect(plainOf(`${E}[31`)).toBe("");
  expect(plainOf(`${E}[3\u00e9x`)).toBe("\u00e9x");
});

test("control characters are seen, and none turns the direction of what follows", () => {
  expect(plainOf("a\u0000b\u0007c\u007fd\te")).toBe("a\u2400b\u2407c\u2421d\te");
  expect(plainOf("abc\u202edcba")).toBe("abc\ufffddcba");
  expect(plainOf("\u009b31mx")).toBe("\ufffd31mx");
});

test("markup is text", () => {
  const hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>&amp;";
  expect(piecesOf(hostile)).toEqual([{ text: hostile, style: expect.anything() }]);
});

test("emoji and other scripts are whole; a line is cut", () => {
  expect(plainOf("🎉 مرحبا")).toBe("🎉 مرحبا");
  expect(plainOf("x".repeat(3 * MAX_LINE))).toHaveLength(MAX_LINE);
});

test("numbers that make no sense change nothing that is seen", () => {
  expect(shown(`${E}[999999999999999999;38;9;;mx`)).toEqual([["x", null]]);
});
