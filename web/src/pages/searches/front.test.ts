import { expect, test } from "vitest";
import { frontOf, type Point } from "./front";

const points: Point[] = [
  { number: 0, x: 1, y: 9 },
  { number: 1, x: 2, y: 5 },
  { number: 2, x: 3, y: 7 },
  { number: 3, x: 2, y: 5 },
];

test("who is beaten in both is left out, and equal ones do not beat each other", () => {
  expect([...frontOf(points, [false, false])].sort()).toEqual([0, 1, 3]);
  expect([...frontOf(points, [true, true])].sort()).toEqual([0, 2]);
});

test("it is what comparing every two of them says", () => {
  const many = Array.from({ length: 60 }, (_, number) => ({ number, x: (number * 7) % 11, y: (number * 5) % 13 }));
  const beats = (a: Point, b: Point) => a.x <= b.x && a.y <= b.y && (a.x < b.x || a.y < b.y);
  const slowly = many.filter((one) => !many.some((other) => beats(other, one))).map((one) => one.number);
  expect([...frontOf(many, [false, false])].sort((a, b) => a - b)).toEqual(slowly);
});
