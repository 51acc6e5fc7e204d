import { expect, test } from "vitest";
import kept from "./same.json?raw";
import { bodyOf, NEW_CONSTRAINT, NEW_OBJECTIVE, NEW_PARAMETER, NEW_SEARCH, type TypedSearch } from "./search_form";
import { commandOf, fileOf, parameterText, pythonCode } from "./search_same";

const code = { path: "train.py", script: "train.py" };
const job = { ...NEW_SEARCH.job, name: "lr-sweep", script: "train.py" };

const WHOLE: TypedSearch = {
  ...NEW_SEARCH,
  parameters: [
    { ...NEW_PARAMETER, key: 0, name: "opt", kind: "choice", choices: 'sgd, "7", "a,b"' },
    { ...NEW_PARAMETER, key: 1, name: "lr", low: "1e-5", high: "1e-1", log: true },
    { ...NEW_PARAMETER, key: 2, name: "hidden", kind: "int", low: "16", high: "256", step: "16" },
    { ...NEW_PARAMETER, key: 3, name: "layers", kind: "choice", choices: "[64], [64,64]" },
    {
      ...NEW_PARAMETER,
      key: 4,
      name: "momentum",
      low: "0",
      high: "0.99",
      when: [{ key: 0, of: "opt", values: 'sgd, "7"' }],
    },
    { ...NEW_PARAMETER, key: 5, name: "note", kind: "fixed", value: "it's @ 5" },
  ],
  objectives: [
    { ...NEW_OBJECTIVE, key: 0, metric: "val_loss", reading: "min" },
    { ...NEW_OBJECTIVE, key: 1, metric: "acc", direction: "maximize" },
  ],
  constraints: [{ ...NEW_CONSTRAINT, key: 0, metric: "memory_gb", bound: "8" }],
  seed: "3",
  samplerOptions: "n_startup_trials=5",
  early: "none",
  passAs: ["arguments", "config"],
  maxTrials: "40",
  parallel: "4",
  maxTime: "8h",
  maxSlotHours: "2.5",
  description: "yes: all of it",
  share: "bob",
  job: {
    ...job,
    args: "--note 'a b'",
    max_tasks: "8",
    virtual_workers: "16",
    tags: "kind=sweep\nnight",
    env: "SIZE=3",
    time_limit_s: "8h",
    tracking: "false",
    audit: "true",
  },
};
const HALVING: TypedSearch = {
  ...NEW_SEARCH,
  objectives: [{ ...NEW_OBJECTIVE, key: 0, metric: "acc", direction: "maximize", reading: "max" }],
  early: "halving",
  resource: "step",
  first: "100",
  last: "2700",
  order: "arrival",
  brackets: "2",
  rungSize: "9",
  target: "0.99",
  job,
};
const POPULATION: TypedSearch = {
  ...NEW_SEARCH,
  sampler: "random",
  early: "population",
  fraction: "0.5",
  maxTrials: "",
  job,
};
const PRUNER: TypedSearch = { ...NEW_SEARCH, early: "pruner", prunerOptions: "n_warmup_steps=3", job };

test("the command, the file and the body are those that tests of the command line read to the same search", () => {
  const all = Object.entries({ whole: WHOLE, halving: HALVING, population: POPULATION, pruner: PRUNER });
  const same = all.map(([name, typed]) => ({
    name,
    command: commandOf(typed, code),
    file: fileOf(typed, code),
    body: bodyOf(typed),
  }));
  expect(JSON.parse(JSON.stringify(same))).toEqual(JSON.parse(kept));
});

test("a command says only what is not the default", () => {
  expect(commandOf({ ...NEW_SEARCH, job }, code)).toBe(
    "pliant tune train.py --param lr=log:1e-5..1e-1 --metric val_loss --max-trials 40 --name lr-sweep",
  );
});

test("a text that could be read as something else is quoted", () => {
  const row = { ...NEW_PARAMETER, key: 0, name: "x", kind: "choice" as const };
  expect(parameterText({ ...row, choices: '"7", "true", .5, "", "a|b", relu' })).toBe(
    'x=choice:"7","true",".5","","a|b",relu',
  );
});

test("trials of another search are exported first, and asked for in Python", () => {
  const warm = { ...NEW_SEARCH, warmStart: "old one", job };
  expect(commandOf(warm, code).split("\n")[0]).toBe("pliant searches export 'old one' 'old one.db'");
  expect(commandOf(warm, code)).toContain("--warm-start 'old one.db'");
  expect(fileOf(warm, code)).toContain('warm-start: "old one.db"');
  expect(pythonCode(warm, code, bodyOf(warm))).toContain('client.searches.trials("old one", states=');
});

test("Python names fields as REST does, and leaves defaults out", () => {
  expect(pythonCode({ ...NEW_SEARCH, job }, code, bodyOf({ ...NEW_SEARCH, job }))).toBe(
    `from pliant.client import Client

with Client.connect() as client:
    search = client.tune(
        "train.py",
        parameters={
            "lr": {"kind": "float", "low": 0.00001, "high": 0.1, "log": True},
        },
        name="lr-sweep",
        objectives=[{"metric": "val_loss", "direction": "minimize", "reading": "last"}],
        sampler={"name": "tpe", "seed": 0},
        max_trials=40,
    )
`,
  );
});
