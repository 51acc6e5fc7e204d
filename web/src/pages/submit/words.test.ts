import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { joinWords, pythonOf, splitWords } from "./words";

const NASTY = [
  "--lr",
  "0.01",
  "a b",
  "it's",
  '"',
  "$HOME",
  "`id`",
  "\\",
  "",
  "x\ny",
  "é🙂",
  "-",
  "*",
  "~",
  "a=b",
  ";rm",
];

test.each([
  ["--lr 0.01  --name 'a b'", ["--lr", "0.01", "--name", "a b"]],
  ['"a \\"b\\" $c"', ['a "b" $c']],
  ["a\\ b ''", ["a b", ""]],
  ['x"y"z', ["xyz"]],
  ["", []],
  ["'open", null],
  ["end\\", null],
])("%j has the words %j", (line, words) => {
  expect(splitWords(line)).toEqual(words);
});

test("what is joined is what is split again, here and in a shell", () => {
  const line = joinWords(NASTY);
  expect(splitWords(line)).toEqual(NASTY);
  const said = execFileSync("/bin/sh", ["-c", `for word in ${line}; do printf '%s\\0' "$word"; done`]).toString();
  expect(said.split("\0").slice(0, -1)).toEqual(NASTY);
});

test("values are literals of Python", () => {
  expect(pythonOf({ a: [1, 0.5, true, null, 'x"\n'] })).toBe('{"a": [1, 0.5, True, None, "x\\"\\n"]}');
});
