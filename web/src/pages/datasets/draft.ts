/** What is typed of a new data set, and what is asked for with it. */
import type { Schemas } from "../../api/client";
import { type Constraint, violation } from "../../api/violation";
import { text } from "../../text";
import type { Request } from "./uploads";

const words = text.datasets;
export type Kind = Schemas["Dataset"]["kind"];
export const KINDS: readonly Kind[] = ["any", "images", "csv"];

/** By the names of the server's fields; everything is a text, as it is typed. */
export const INITIAL = {
  kind: "any",
  name: "",
  description: "",
  path: "",
  "split.validation_percent": "10",
  "split.test_percent": "10",
  "split.seed": "0",
  "images.width": "",
  "images.height": "",
  "images.resizing": "squash",
  "images.colour": "rgb",
  "csv.delimiter": "",
  "csv.header": "true",
};

export type Draft = Readonly<typeof INITIAL>;
export type DraftField = keyof Draft;
export const DRAFT_FIELDS = Object.keys(INITIAL) as DraftField[];

const TEXTS: readonly DraftField[] = [
  "kind",
  "name",
  "description",
  "path",
  "images.resizing",
  "images.colour",
  "csv.delimiter",
];

/** What a typed field means; null: it is not given. */
function meantBy(draft: Draft, field: DraftField): unknown {
  const typed = draft[field];
  if (field === "csv.header") return typed === "true";
  if (TEXTS.includes(field)) return typed === "" && field !== "name" ? null : typed;
  return typed.trim() === "" ? null : Number(typed);
}

/** Whether a field counts for a kind. */
export function isFor(field: DraftField, kind: string): boolean {
  const [part] = field.split(".");
  if (!field.includes(".")) return true;
  return part === "split" ? kind !== "any" : part === kind;
}

export function problemsOf(
  draft: Draft,
  fromDisk: boolean,
  constraints: Readonly<Record<string, Constraint>>,
): Partial<Record<DraftField, string>> {
  const problems: Partial<Record<DraftField, string>> = {};
  for (const field of DRAFT_FIELDS) {
    if (field === "path" ? !fromDisk : !isFor(field, draft.kind)) continue;
    const constraint = constraints[field === "path" ? "source.path" : field];
    const wrong = violation(constraint, meantBy(draft, field), field === "name" ? words.nameForm : undefined);
    if (wrong !== null) problems[field] = wrong;
  }
  if (fromDisk && draft.path.trim() === "") problems.path = text.violation.required;
  return problems;
}

/** The request without where the data come from. */
export function requestOf(draft: Draft, sharedWith: readonly string[]): Request {
  const of = (field: DraftField) => meantBy(draft, field);
  const request: Record<string, unknown> = {
    name: draft.name.trim(),
    kind: draft.kind,
    description: draft.description,
    shared_with: [...sharedWith],
  };
  if (draft.kind !== "any") {
    request.split = {
      validation_percent: of("split.validation_percent") ?? 10,
      test_percent: of("split.test_percent") ?? 10,
      seed: of("split.seed") ?? 0,
    };
  }
  if (draft.kind === "images") {
    request.images = {
      width: of("images.width"),
      height: of("images.height"),
      resizing: of("images.resizing"),
      colour: of("images.colour"),
    };
  }
  if (draft.kind === "csv") request.csv = { delimiter: of("csv.delimiter"), header: of("csv.header") };
  return request as Request;
}
