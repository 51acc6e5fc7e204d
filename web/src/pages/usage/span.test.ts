import { expect, test } from "vitest";
import { dayText, presetOf, spanOf } from "./span";

const at = (year: number, month: number, day: number) => new Date(year, month - 1, day).getTime() / 1000;

test("so many days until now", () => {
  expect(spanOf("-7d", null)).toEqual({ from: -604_800, until: 0 });
});

test.each([[null], [""], ["yesterday"], ["-7"], ["2026-02-31"], ["-0d' OR 1=1"]])("%s is the usual span", (from) => {
  expect(spanOf(from, null)).toEqual({ from: -30 * 86_400, until: 0 });
  expect(presetOf(from)).toBe("-30d");
});

test("both days are whole", () => {
  expect(spanOf("2026-11-01", "2026-11-01")).toEqual({ from: at(2026, 11, 1), until: at(2026, 11, 2) });
  expect(spanOf("2026-12-30", "2026-12-31")).toEqual({ from: at(2026, 12, 30), until: at(2027, 1, 1) });
  expect(presetOf("2026-11-01")).toBeNull();
});

test("an end before the start, or none, is now", () => {
  expect(spanOf("2026-11-02", "2026-11-01")).toEqual({ from: at(2026, 11, 2), until: 0 });
  expect(spanOf("2026-11-02", null)).toEqual({ from: at(2026, 11, 2), until: 0 });
});

test("a day is written as it is read", () => {
  expect(dayText(at(2026, 1, 9))).toBe("2026-01-09");
  expect(spanOf(dayText(at(2026, 1, 9)), null).from).toBe(at(2026, 1, 9));
});
