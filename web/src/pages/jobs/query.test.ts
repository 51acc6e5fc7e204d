import { expect, test } from "vitest";
import { columnsOf, isFiltered, queryOf, quickViews, sameFilters } from "./query";

const search = (text: string) => new URLSearchParams(text);

test("the address says what is asked for; what the server does not know is left out", () => {
  expect(queryOf(search("state=running,failed&state=failed&owner=ada&tag=lr%3D0.1&q=%20res%20&sort=colour"))).toEqual({
    sort: "-submitted",
    state: ["running", "failed"],
    owner: ["ada"],
    tag: ["lr=0.1"],
    q: "res",
  });
  expect(queryOf(search(`q=${"x".repeat(300)}&sort=name`)).q).toHaveLength(200);
});

test("order and columns are no filters", () => {
  expect(isFiltered(search("sort=name&cols=id"))).toBe(false);
  expect(isFiltered(search("q=x"))).toBe(true);
  expect(sameFilters(search("state=ended&sort=name"), search("state=ended&cols=id"))).toBe(true);
  expect(sameFilters(search("state=ended"), search(""))).toBe(false);
});

test("the view of one's own jobs holds any name", () => {
  const mine = quickViews("a&b=c").find((view) => view.id === "mine");
  expect(queryOf(search(mine?.query ?? "")).owner).toEqual(["a&b=c"]);
});

test("columns are those of the address that there are", () => {
  expect([...columnsOf("name,nonsense", ["id", "name"], ["id"])]).toEqual(["name"]);
  expect([...columnsOf("nonsense", ["id", "name"], ["id"])]).toEqual(["id"]);
});
