import { expect, test } from "vitest";
import {
  age,
  bytes,
  count,
  counted,
  duration,
  isoTime,
  measure,
  measures,
  percent,
  slotHours,
  slots,
  time,
} from "./format";

const plain = (text: string): string => text.replaceAll("\u202f", " ");

test.each([
  [0, "0"],
  [0.03125, "0.0313"],
  [0.0000125, "1.25e-5"],
  [1240.4, "1,240"],
  [-12.5, "-12.5"],
  [100, "100"],
  [1, "1"],
  [2.5e12, "2.5e12"],
  [Number.NaN, "–"],
  [null, "–"],
])("a measure of %s has three significant digits", (value, text) => {
  expect(measure(value)).toBe(text);
});

test.each([
  [
    [1.086, 1.088, 1.09],
    ["1.086", "1.088", "1.09"],
  ],
  [
    [0, 0.5, 1],
    ["0", "0.5", "1"],
  ],
  [
    [null, 100, 200],
    ["", "100", "200"],
  ],
])("measures %s beside each other are told apart", (values, texts) => {
  expect(measures(values)).toEqual(texts);
});

test.each([
  [0, "0 s"],
  [0.18, "180 ms"],
  [1.5, "1.5 s"],
  [12, "12 s"],
  [59.7, "1 min"],
  [200, "3 min 20 s"],
  [3840, "1 h 4 min"],
  [183_600, "2 d 3 h"],
  [-5, "−5 s"],
])("%s seconds read %s", (seconds, text) => {
  expect(plain(duration(seconds))).toBe(text);
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1200, "1.2 kB"],
  [999_600, "1 MB"],
  [48_256_000, "48.3 MB"],
  [1.2e9, "1.2 GB"],
])("%s bytes read %s", (value, text) => {
  expect(plain(bytes(value))).toBe(text);
});

test("counts have their thousands apart, and their noun in its number", () => {
  expect(count(10_000)).toBe("10,000");
  expect(plain(counted(1, "slot"))).toBe("1 slot");
  expect(plain(counted(2, "match", "matches"))).toBe("2 matches");
});

test("what is not there is a dash, and nothing is nothing", () => {
  expect([count(null), percent(undefined), bytes(null), duration(null), age(null), time(null)]).toEqual(
    Array(6).fill("–"),
  );
  expect(plain(percent(0))).toBe("0 %");
});

test("slot-hours stand below each other", () => {
  expect([0, 30, 45_000, 4_464_000].map(slotHours)).toEqual(["0.00", "< 0.01", "12.50", "1,240.00"]);
  expect(slotHours(null)).toBe("–");
  expect([0, 0.0004, 3.254, Number.NaN].map(slots)).toEqual(["0.00", "< 0.01", "3.25", "–"]);
});

test("an age has one unit", () => {
  expect([5, 250, 7300, 200_000].map((seconds) => plain(age(seconds)))).toEqual(["5 s", "4 min", "2 h", "2 d"]);
});

test("a time of another day says which", () => {
  const now = new Date(2026, 10, 22, 12, 0, 0).getTime() / 1000;
  expect(time(now - 60, now)).toBe("11:59:00");
  expect(time(now - 86_400, now)).toContain("21 Nov");
  expect(isoTime(0)).toBe("1970-01-01T00:00:00Z");
});
