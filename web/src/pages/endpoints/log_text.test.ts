import { expect, test } from "vitest";
import { plainText } from "./log_text";

test("colours, links and moves of the cursor are left out, and what overwrites a line stands alone", () => {
  expect(plainText("\u001b[31mred\u001b[0m\n10 %\r20 %\nend\r\n")).toBe("red\n20 %\nend\n");
  expect(plainText("\u001b]8;;http://evil\u0007here\u001b]8;;\u0007")).toBe("here");
});

test("other control signs are seen, and long lines are cut", () => {
  expect(plainText("a\u0000b\u202ec")).toBe("a�b�c");
  expect(plainText("x".repeat(5000)).length).toBe(2001);
});
