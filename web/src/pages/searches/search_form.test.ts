import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import {
  bodyOf,
  choicesOf,
  hasSameGoals,
  knownOf,
  NEW_CONSTRAINT,
  NEW_OBJECTIVE,
  NEW_PARAMETER,
  NEW_SEARCH,
  problemsOf,
  scalarOf,
  serverField,
} from "./search_form";

const typed = {
  ...NEW_SEARCH,
  parameters: [
    { ...NEW_PARAMETER, key: 0, name: "opt", kind: "choice" as const, choices: "sgd, adam" },
    { ...NEW_PARAMETER, key: 1, name: "lr", low: "1e-5", high: "1e-1", log: true },
    {
      ...NEW_PARAMETER,
      key: 2,
      name: "momentum",
      low: "0",
      high: "0.99",
      step: "0.01",
      when: [{ key: 0, of: "opt", values: "sgd" }],
    },
    { ...NEW_PARAMETER, key: 3, name: "seed", kind: "fixed" as const, value: "7" },
  ],
  job: { ...NEW_SEARCH.job, name: "lr-sweep", script: "train.py" },
};

test("what is typed becomes the body that the server takes", () => {
  expect(problemsOf(typed)).toEqual({});
  const halving = { ...typed, early: "halving" as const, maxTime: "8h", job: { ...typed.job, args: "--epochs 27" } };
  expect(bodyOf(halving)).toEqual({
    name: "lr-sweep",
    script: "train.py",
    args: ["--epochs", "27"],
    parameters: {
      opt: { kind: "choice", choices: ["sgd", "adam"] },
      lr: { kind: "float", low: 1e-5, high: 0.1, log: true },
      momentum: { kind: "float", low: 0, high: 0.99, step: 0.01, when: { opt: ["sgd"] } },
      seed: { kind: "fixed", value: 7 },
    },
    objectives: [{ metric: "val_loss", direction: "minimize", reading: "last" }],
    sampler: { name: "tpe", seed: 0 },
    halving: { min: 1, max: 27, factor: 3 },
    max_trials: 40,
    max_time_s: 28_800,
    min_tasks: 1,
    max_tasks: 1,
    queue: "default",
    priority: 5000,
    mode: "exact",
  });
});

test("a population, bounds and options are said as the server has them", () => {
  const body = bodyOf(
    {
      ...typed,
      early: "population",
      fraction: "0.5",
      samplerOptions: "n_startup_trials=5\n\nmultivariate = true",
      constraints: [
        { ...NEW_CONSTRAINT, key: 0, metric: "memory_gb", bound: "8" },
        { ...NEW_CONSTRAINT, key: 1, metric: "acc", side: ">=", bound: "0.9", reading: "max" },
      ],
      passAs: ["config"],
      share: "bob, *",
      warmStart: "old",
    },
    [{ values: { lr: 0.1 }, results: [1] }],
  );
  expect(body).toMatchObject({
    population: { size: 8, every: 3, max: 27, fraction: 0.5 },
    sampler: { name: "tpe", seed: 0, options: { n_startup_trials: 5, multivariate: true } },
    constraints: [
      { metric: "memory_gb", upper: 8 },
      { metric: "acc", lower: 0.9, reading: "max" },
    ],
    pass_as: ["config"],
    shared_with: ["bob", "*"],
    known: [{ values: { lr: 0.1 }, results: [1] }],
  });
  expect(Object.keys(body)).not.toContain("halving");
});

test("choices are texts, numbers or lists", () => {
  expect(choicesOf('relu, [64,64], "a,b"')).toEqual(["relu", "[64,64]", '"a,b"']);
  expect(["7", '"7"', "true", "null", "[64,64]", "relu", ".5", "007"].map(scalarOf)).toEqual([
    7,
    "7",
    true,
    null,
    [64, 64],
    "relu",
    ".5",
    "007",
  ]);
});

test("what is wrong is said at its field", () => {
  const wrong = {
    ...typed,
    objectives: [{ ...NEW_OBJECTIVE, key: 4 }],
    constraints: [{ ...NEW_CONSTRAINT, key: 2, metric: "acc", bound: "high" }],
    samplerOptions: "seed",
    maxTime: "soon",
    parameters: [
      { ...NEW_PARAMETER, key: 5, name: "1x", low: "1", high: "0", when: [{ key: 0, of: "lr", values: "1" }] },
      { ...NEW_PARAMETER, key: 6, name: "lr", low: "0", high: "1", log: true },
      {
        ...NEW_PARAMETER,
        key: 7,
        name: "lr",
        kind: "choice" as const,
        choices: "one",
        when: [{ key: 3, of: "1x", values: " " }],
      },
    ],
    job: { ...typed.job, max_tasks: "0" },
  };
  expect(Object.keys(problemsOf(wrong)).sort()).toEqual([
    "constraints.2.bound",
    "job.max_tasks",
    "max_time_s",
    "objectives.4.metric",
    "parameters.5.high",
    "parameters.5.name",
    "parameters.5.when.0.of",
    "parameters.6.low",
    "parameters.7.choices",
    "parameters.7.name",
    "parameters.7.when.3.values",
    "sampler.options",
  ]);
});

test("what the server says of a field is found at the one that fills it", () => {
  const form = {
    ...typed,
    objectives: [
      { ...NEW_OBJECTIVE, key: 3 },
      { ...NEW_OBJECTIVE, key: 9 },
    ],
    constraints: [{ ...NEW_CONSTRAINT, key: 2, side: ">=" as const }],
  };
  const fields = ["parameters.1.low", "parameters.1.name", "parameters.2.when.0.values", "objectives.9.metric"];
  expect([...fields, "constraints.2.bound", "job.queue", "max_trials"].map((one) => serverField(one, form))).toEqual([
    "parameters.lr.low",
    "parameters.lr",
    "parameters.momentum.when.opt",
    "objectives.1.metric",
    "constraints.0.lower",
    "queue",
    "max_trials",
  ]);
});

test("of an earlier search those trials are known that this one could have had", () => {
  const trial = (values: Record<string, number | string>, results: number[] | null = [0.5]) =>
    ({ values, results, state: "completed", reports: [], violations: [] }) as unknown as Schemas["Trial"];
  const sound = { opt: "sgd", lr: 0.01, momentum: 0.9, seed: 7 };
  const known = (values: Record<string, number | string>) => knownOf(trial(values), typed);
  expect(known({ ...sound, width: 3 })).toMatchObject({ values: sound, results: [0.5], state: "completed" });
  expect(known({ opt: "adam", lr: 0.01, seed: 7 })).toMatchObject({ values: { opt: "adam", lr: 0.01, seed: 7 } });
  expect([{ ...sound, lr: 1 }, { ...sound, opt: "lion" }, { ...sound, seed: 8 }, { lr: 0.01 }].map(known)).toEqual([
    null,
    null,
    null,
    null,
  ]);
  expect(knownOf(trial(sound, [1, 2]), typed)).toBeNull();
  const goals = (metric: string) =>
    ({ objectives: [{ metric, direction: "minimize" }] }) as unknown as Schemas["SearchSettings"];
  expect([hasSameGoals(goals("val_loss"), typed), hasSameGoals(goals("acc"), typed)]).toEqual([true, false]);
});
