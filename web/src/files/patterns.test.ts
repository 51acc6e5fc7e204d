import { expect, test } from "vitest";
import { ALWAYS_IGNORED, Patterns, readPatterns } from "./patterns";

test.each([
  ["*.pt", "a.pt", "a.pt"],
  ["*.pt", "runs/a.pt", "runs/a.pt"],
  ["*.pt", "a.pth", null],
  ["runs/", "x/runs/1/a.txt", "x/runs/"],
  ["runs/", "runs", null],
  ["/data", "data/a.csv", "data/"],
  ["/data", "x/data", null],
  ["data/*.csv", "data/a.csv", "data/a.csv"],
  ["a[0-9].txt", "a7.txt", "a7.txt"],
  ["a[!0-9].txt", "a7.txt", null],
  ["a[.txt", "a[.txt", "a[.txt"],
  ["a[z-a].txt", "ab.txt", null],
  ["a+(b).txt", "a+(b).txt", "a+(b).txt"],
])("the pattern %s on %s leaves out %s", (pattern, name, left) => {
  expect(new Patterns([pattern]).leftOut(name)).toBe(left);
});

test("histories, caches and packages are always left out", () => {
  const patterns = new Patterns(ALWAYS_IGNORED);
  expect(patterns.leftOut(".git/HEAD")).toBe(".git/");
  expect(patterns.leftOut("a/__pycache__/b.pyc")).toBe("a/__pycache__/");
  expect(patterns.leftOut(".gitignore")).toBeNull();
});

test("comments and empty lines are no patterns", () => {
  expect(readPatterns("# all\n\n*.pt \r\n")).toEqual(["*.pt"]);
});
