import { expect, test } from "vitest";
import { text } from "../text";
import { type Constraint, violation } from "./violation";

const words = text.violation;
const NAME: Constraint = { type: "string", minLength: 1, maxLength: 3, pattern: "^[a-z🙂]*$" };

test.each<[Constraint, unknown, string | null]>([
  [{ type: "integer", minimum: 1, maximum: 4096 }, 8, null],
  [{ type: "integer", minimum: 1, maximum: 4096 }, 0, words.between(1, 4096)],
  [{ type: "integer", minimum: 0 }, -1, words.atLeast(0)],
  [{ type: "integer", minimum: 0 }, 1.5, words.integer],
  [{ type: "number", exclusiveMinimum: 0 }, 0, words.above(0)],
  [{ type: "number", exclusiveMaximum: 100 }, 100, words.below(100)],
  [{ type: "number" }, Number.NaN, words.number],
  [NAME, "", words.shorter(1)],
  [NAME, "abcd", words.longer(3, 4)],
  [NAME, "🙂🙂🙂", null],
  [NAME, "A", "letters"],
  [{ enum: ["a", "b"] }, "c", words.oneOf("a, b")],
  [{ items: NAME, maxItems: 2 }, ["a", "b", "c"], words.many(2)],
  [{ items: NAME }, ["a", "B"], words.at("B", "letters")],
  [{ patternProperties: { "^[A-Z]+$": {} } }, { A: "1", b: "2" }, words.at("b", "letters")],
  [{ propertyNames: { maxLength: 2 } }, { abc: "" }, words.at("abc", words.longer(2, 3))],
  [{ minimum: 1 }, null, null],
])("of %j the value %j is judged %j", (constraint, value, expected) => {
  expect(violation(constraint, value, "letters")).toBe(expected);
});
