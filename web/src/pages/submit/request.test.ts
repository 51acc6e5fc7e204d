import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import type { Constraint } from "../../api/violation";
import { text } from "../../text";
import { commandOf, type Origin, pythonCode } from "./command";
import { FIELD_NAMES, isMeant, type Typed, typedOfJob } from "./fields";
import { read } from "./request";

const described = JSON.parse(readFileSync("openapi.json", "utf8"));
const body = described.paths["/v1/jobs"].post.requestBody.content["multipart/form-data"].schema.properties.job;
const CONSTRAINTS: Record<string, Constraint> = Object.fromEntries(
  Object.entries(body.properties as Record<string, Constraint & { anyOf?: Constraint[] }>).map(([name, field]) => [
    name,
    field.anyOf?.find((one) => one.type !== "null") ?? field,
  ]),
);

const FOLDER: Origin = { kind: "code", path: "digits", script: "elastic.py", base: { max_tasks: "1" } };
const TYPED: Typed = {
  script: "elastic.py",
  args: "--epochs 3 --note 'a b'",
  max_tasks: "8",
  tags: "team=vision\nnight",
  env: "SEED=1",
  after: "3, array-1",
  time_limit_s: "1h30m",
  memory_bytes: "4GB",
  environment: "requirements:requirements.txt",
};

test("every field of a form is one of the server's", () => {
  for (const name of FIELD_NAMES) expect(Object.keys(CONSTRAINTS)).toContain(name);
});

test("what is typed becomes what the server takes, the command that does it, and Python", () => {
  const { whole, problems } = read(TYPED, {}, CONSTRAINTS);
  expect(problems).toEqual({});
  expect(whole).toEqual({
    script: "elastic.py",
    args: ["--epochs", "3", "--note", "a b"],
    max_tasks: 8,
    tags: { team: "vision", night: "" },
    env: { SEED: "1" },
    after: ["job-3", "array-1"],
    time_limit_s: 5400,
    memory_bytes: 4e9,
    environment: "requirements:requirements.txt",
  });
  expect(commandOf(FOLDER, TYPED)).toBe(
    "pliant submit digits --max 8 --tag team=vision --tag night --requirements requirements.txt --env SEED=1 " +
      "--after 3 --after array-1 --memory 4GB --time-limit 1h30m -- --epochs 3 --note 'a b'",
  );
  expect(pythonCode(FOLDER, { script: "elastic.py", max_tasks: 8 })).toContain(
    'job = client.submit("digits", script="elastic.py", max_tasks=8)',
  );
});

test("all that is wrong is said beside its field", () => {
  const typed: Typed = { max_tasks: "0", priority: "many", name: "a/b", memory_bytes: "much", args: "'" };
  expect(Object.keys(read(typed, {}, CONSTRAINTS).problems).sort()).toEqual(
    ["args", "max_tasks", "memory_bytes", "name", "priority", "script"].sort(),
  );
  const few: Typed = { script: "a.py", max_tasks: "8", min_tasks: "9", virtual_workers: "4" };
  expect(read(few, {}, CONSTRAINTS).problems).toEqual({
    min_tasks: text.submission.wrong.minAboveMax(9, 8),
    virtual_workers: text.submission.wrong.tooFewParts(8),
  });
});

test("a fixed job has one size, and nothing of an elastic one", () => {
  const typed: Typed = {
    script: "ddp.py",
    fixed: "true",
    max_tasks: "4",
    virtual_workers: "8",
    min_tasks: "2",
    mode: "fast",
  };
  expect(read(typed, {}, CONSTRAINTS).whole).toEqual({ script: "ddp.py", fixed: true, max_tasks: 4, min_tasks: 4 });
  expect(commandOf({ kind: "code", path: "ddp.py", script: "ddp.py", base: {} }, typed)).toBe(
    "pliant submit ddp.py --fixed 4",
  );
});

test("running again says only what is otherwise", () => {
  const base: Typed = { script: "a.py", max_tasks: "4", dataset: "flowers", time_limit_s: "8h", args: "--lr 1" };
  const typed: Typed = { ...base, max_tasks: "8", dataset: "", time_limit_s: "", args: "" };
  expect(read(typed, base, CONSTRAINTS).changes).toEqual({ max_tasks: 8, dataset: null, time_limit_s: null, args: [] });
  const again: Origin = { kind: "job", id: "job-3", base };
  expect(commandOf(again, typed)).toBe("pliant rerun job-3 --max 8 --dataset '' --time-limit off");
  expect(pythonCode(again, { max_tasks: 8 })).toContain('job = client.rerun("job-3", max_tasks=8)');
});

test("a job is typed as it was submitted, without its variables", () => {
  const spec = {
    name: "elastic.py",
    script: "elastic.py",
    virtual_workers: null,
    max_tasks: 4,
    args: ["--a", "b c"],
    priority: 5000,
    env: { TOKEN: "x" },
    time_limit_s: 60,
    tags: { a: "" },
    fixed: false,
    tracking: true,
  };
  const typed = typedOfJob({ spec } as unknown as Schemas["Job"]);
  expect(typed).toMatchObject({
    script: "elastic.py",
    max_tasks: "4",
    args: "--a 'b c'",
    time_limit_s: "1m",
    tags: "a",
  });
  expect(typed.env ?? typed.name ?? typed.virtual_workers).toBeUndefined();
  expect(read(typed, typed, CONSTRAINTS).changes).toEqual({});
});

test("a value that looks like an option, or like a command, stays a value", () => {
  const typed: Typed = { script: "a.py", name: "$(rm -rf ~)", queue: "a;b" };
  expect(commandOf({ kind: "code", path: "-x y", script: "a.py", base: {} }, typed)).toBe(
    "pliant submit './-x y' --name '$(rm -rf ~)' --queue 'a;b'",
  );
});

test("fields of one kind of job only are meant for it alone", () => {
  expect([isMeant("virtual_workers", true), isMeant("max_restarts", false), isMeant("name", true)]).toEqual([
    false,
    false,
    true,
  ]);
});
