import { expect, test } from "vitest";
import { forgetPages, recentPages, remember, withVisit } from "./recent";

test("the page looked at last is first, and stands there once", () => {
  const a = { path: "/jobs/a", title: "a" };
  const b = { path: "/jobs/b", title: "b" };
  expect(withVisit([a, b], { ...b, title: "b renamed" })).toEqual([{ ...b, title: "b renamed" }, a]);
});

test("only so many are kept, and not the one that is looked at", () => {
  forgetPages();
  for (let page = 0; page < 30; page += 1) remember({ path: `/jobs/job-${page}`, title: `job-${page}` });
  const recent = recentPages("/jobs/job-29");
  expect(recent).toHaveLength(19);
  expect(recent[0]?.title).toBe("job-28");
});
