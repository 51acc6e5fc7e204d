import { expect, test } from "vitest";
import { steady } from "./steady";

const row = (id: string, value = 0) => ({ id, value });
const idOf = (one: { id: string }) => one.id;

test("rows keep their order and get their newest values", () => {
  const shown = steady([row("a"), row("b")], [row("b", 2), row("a", 1)], idOf);
  expect(shown).toEqual({ rows: [row("a", 1), row("b", 2)], numNew: 0, isChanged: true });
});

test("what has come is counted and not shown; what was not seen before is found where it is now", () => {
  const shown = steady([row("a"), row("b"), undefined], [row("n"), row("a"), row("b"), row("c")], idOf);
  expect(shown.rows).toEqual([row("a"), row("b"), row("c")]);
  expect([shown.numNew, shown.isChanged]).toEqual([1, true]);
});

test("no row is shown twice", () => {
  const shown = steady([row("a"), undefined], [row("n"), row("b"), row("a")], idOf);
  expect(shown.rows).toEqual([row("a"), undefined]);
});

test("nothing has changed where nothing has", () => {
  const rows = [row("a"), undefined];
  expect(steady(rows, rows, idOf)).toEqual({ rows, numNew: 0, isChanged: false });
});
