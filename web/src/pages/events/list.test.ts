import { expect, test } from "vitest";
import type { ServerEvent } from "../../api/live";
import { dataOf, fits, holds, merge } from "./list";

function event(seq: number, fields: Partial<ServerEvent> = {}): ServerEvent {
  return { seq, at: seq, kind: "decision", message: `message ${seq}`, job_id: "job-1", task_id: null, ...fields };
}

test("every event is listed once, the newest first", () => {
  const listed = merge([event(2), event(3)], [event(3), event(1)]);
  expect(listed.map((one) => one.seq)).toEqual([3, 2, 1]);
});

test("what has just come is listed if it fits", () => {
  const all = { kinds: [], job: null };
  expect(fits(event(1), all)).toBe(true);
  expect(fits(event(1, { kind: "slots.changed" }), all)).toBe(false);
  expect(fits(event(1, { kind: "slots.changed" }), { kinds: ["slots.changed"], job: null })).toBe(true);
  expect(fits(event(1), { kinds: ["task.lost"], job: null })).toBe(false);
  expect(fits(event(1), { kinds: [], job: "job-2" })).toBe(false);
});

test("a text is found by its words, whatever their capitals", () => {
  const lost = event(1, { message: "Task job-1.2 was lost", kind: "task.lost" });
  expect([holds(lost, "LOST job-1"), holds(lost, "found"), holds(lost, "")]).toEqual([true, false, true]);
});

test("the data of an event is shown as it is", () => {
  expect(dataOf(event(1, { data: { from: 2, to: null, who: "<b>ada</b>" } }))).toEqual([
    ["from", "2"],
    ["to", "–"],
    ["who", "<b>ada</b>"],
  ]);
});
