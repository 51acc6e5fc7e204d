import { expect, test } from "vitest";
import type { Constraint } from "../../api/violation";
import { text } from "../../text";
import { INITIAL, isFor, problemsOf, requestOf } from "./draft";

const CONSTRAINTS: Record<string, Constraint> = {
  name: { pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" },
  "split.test_percent": { minimum: 0, exclusiveMaximum: 100 },
  "images.width": { type: "integer", minimum: 1, maximum: 8192 },
};

test("a folder as it is has no parts to deal out", () => {
  expect(requestOf({ ...INITIAL, name: " cifar10 " }, ["*"])).toEqual({
    name: "cifar10",
    kind: "any",
    description: "",
    shared_with: ["*"],
  });
});

test("images and tables have what is theirs alone", () => {
  const images = requestOf({ ...INITIAL, kind: "images", name: "a", "images.width": "64", "csv.delimiter": ";" }, []);
  expect(images).toMatchObject({
    split: { validation_percent: 10, test_percent: 10, seed: 0 },
    images: { width: 64, height: null, resizing: "squash", colour: "rgb" },
  });
  expect(images).not.toHaveProperty("csv");
  const table = requestOf({ ...INITIAL, kind: "csv", name: "a", "csv.header": "false" }, []);
  expect(table).toMatchObject({ csv: { delimiter: null, header: false } });
});

test("only what counts for the kind is judged", () => {
  const draft = { ...INITIAL, name: "-", "split.test_percent": "100", "images.width": "0.5" };
  expect(problemsOf(draft, false, CONSTRAINTS)).toEqual({ name: text.datasets.nameForm });
  expect(Object.keys(problemsOf({ ...draft, kind: "images" }, true, CONSTRAINTS)).sort()).toEqual([
    "images.width",
    "name",
    "path",
    "split.test_percent",
  ]);
  expect([isFor("csv.header", "images"), isFor("split.seed", "csv")]).toEqual([false, true]);
});
