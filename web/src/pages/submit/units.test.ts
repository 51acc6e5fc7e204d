import { expect, test } from "vitest";
import { bytesOf, secondsOf, sizeText, timeText } from "./units";

test.each([
  ["90", 90],
  ["1h30m", 5400],
  ["1 h 30 min", 5400],
  ["2d", 172_800],
  ["0.5s", 0.5],
  ["", null],
  ["soon", null],
  ["-1s", null],
])("%j is %j seconds", (text, seconds) => {
  expect(secondsOf(text)).toBe(seconds);
});

test.each([
  ["4GB", 4e9],
  ["512 MiB", 2 ** 29],
  ["1000", 1000],
  ["1.5k", 1500],
  ["much", null],
])("%j is %j bytes", (text, bytes) => {
  expect(bytesOf(text)).toBe(bytes);
});

test.each([0, 5, 60, 90, 5400, 90_061, 0.5])("%d seconds are the same when typed", (seconds) => {
  expect(secondsOf(timeText(seconds))).toBe(seconds);
});

test.each([0, 5, 64 * 2 ** 20, 4e9, 2 ** 40, 1_500_000])("%d bytes are the same when typed", (bytes) => {
  expect(bytesOf(sizeText(bytes))).toBe(bytes);
});
