import { expect, test } from "vitest";
import { linesOf, readLabels, wrongLine } from "./labels";

test("labels are read as they are written", () => {
  const labels = { rack: "7", zone: "b", kind: "" };
  expect(linesOf(labels)).toBe("rack=7\nzone=b\nkind=");
  expect(readLabels(linesOf(labels))).toEqual(labels);
  expect(readLabels("\n  rack = 7 \n\nrack=8\n")).toEqual({ rack: "8" });
  expect(readLabels("url=a=b")).toEqual({ url: "a=b" });
  expect(readLabels("")).toEqual({});
});

test("the first line that is no label is told", () => {
  expect(wrongLine("rack=7\n\nzone=")).toBeNull();
  expect(wrongLine("rack=7\nzone")).toBe("zone");
  expect(wrongLine("=7")).toBe("=7");
});
