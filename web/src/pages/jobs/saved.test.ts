import { expect, test } from "vitest";
import { readKept, withKept, withView } from "./saved";

const view = (name: string, query = "") => ({ name, query });
const many = Array.from({ length: 50 }, (_, number) => view(`view ${number}`));

test("a view takes the place of one of its name, and of too many the oldest goes", () => {
  expect(withView([view("a", "x=1"), view("b")], view("a", "x=2"))).toEqual([view("b"), view("a", "x=2")]);
  expect(withView(many, view("new")).map(({ name }) => name)).toEqual([
    ...many.slice(1).map(({ name }) => name),
    "new",
  ]);
});

test("what a browser has kept comes after what the server has, which wins", () => {
  expect(withKept([view("a", "x=1")], [view("a", "x=2"), view("b")])).toEqual([view("a", "x=1"), view("b")]);
  expect(withKept(many, [view("new")])).toEqual(many);
});

test("only views that the server takes are read of what lies in a browser", () => {
  const good = view("mine", "state=running&owner=ann");
  const bad = [view(""), view(" a"), view("x".repeat(61)), view("b", "q".repeat(2001)), view("c", "a b"), 7, null, {}];
  expect(readKept(JSON.stringify([good, ...bad, { ...good, more: 1 }]))).toEqual([good]);
  for (const text of [null, "", "{", "7", "{}"]) expect(readKept(text)).toEqual([]);
});
