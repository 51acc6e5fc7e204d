import { expect, test } from "vitest";
import { madeUp } from "./password";

test("a made-up password has all its digits", () => {
  expect(madeUp(new Uint16Array([0, 65_535, 16, 4096, 1]))).toBe("0000-ffff-0010-1000-0001");
});
