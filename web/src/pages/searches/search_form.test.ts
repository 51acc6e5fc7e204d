import { expect, test } from "vitest";
import {
  bodyOf,
  choicesOf,
  commandOf,
  NEW_PARAMETER,
  NEW_SEARCH,
  parameterText,
  problemsOf,
  scalarOf,
} from "./search_form";

const typed = {
  ...NEW_SEARCH,
  name: "lr-sweep",
  parameters: [
    { ...NEW_PARAMETER, key: 0, name: "lr", low: "1e-5", high: "1e-1", log: true },
    { ...NEW_PARAMETER, key: 1, name: "hidden", kind: "int" as const, low: "16", high: "256", step: "16" },
    { ...NEW_PARAMETER, key: 2, name: "act", kind: "choice" as const, choices: "relu, gelu" },
    { ...NEW_PARAMETER, key: 3, name: "seed", kind: "fixed" as const, value: "7" },
  ],
};

test("what is typed becomes the body that the server takes", () => {
  expect(problemsOf(typed)).toEqual({});
  expect(bodyOf({ ...typed, halving: true, maxTime: "8h", args: "--epochs 27" })).toEqual({
    name: "lr-sweep",
    args: ["--epochs", "27"],
    parameters: {
      lr: { kind: "float", low: 1e-5, high: 0.1, log: true },
      hidden: { kind: "int", low: 16, high: 256, step: 16 },
      act: { kind: "choice", choices: ["relu", "gelu"] },
      seed: { kind: "fixed", value: 7 },
    },
    objectives: [{ metric: "val_loss", direction: "minimize", reading: "last" }],
    sampler: { name: "tpe", seed: 0 },
    halving: { min: 1, max: 27, factor: 3 },
    max_trials: 40,
    max_time_s: 28_800,
    max_tasks: 1,
    queue: "default",
    priority: 5000,
  });
});

test("the command line says the same, and only what is not the default", () => {
  expect(commandOf({ ...typed, second: "size", reading: "min", maxTasks: "8", args: "--note 'a b'" }, "train.py")).toBe(
    "pliant tune train.py --name lr-sweep --param lr=log:1e-5..1e-1 --param hidden=int:16..256:16 --param act=choice:relu,gelu " +
      "--param seed=fixed:7 --objective val_loss:min:minimize --objective size:minimize --max-trials 40 --max 8 -- --note 'a b'",
  );
});

test("choices are texts, numbers or lists", () => {
  expect(choicesOf('relu, [64,64], "a,b"')).toEqual(["relu", "[64,64]", '"a,b"']);
  expect(["7", '"7"', "true", "null", "[64,64]", "relu", ".5"].map(scalarOf)).toEqual([
    7,
    "7",
    true,
    null,
    [64, 64],
    "relu",
    ".5",
  ]);
  const lists = { ...NEW_PARAMETER, key: 0, name: "layers", kind: "choice" as const, choices: "[64], [64,64]" };
  expect(parameterText(lists)).toBe("layers=choice:[[64],[64,64]]");
});

test("what is wrong is said at its field", () => {
  const wrong = {
    ...typed,
    metric: " ",
    maxTrials: "",
    maxTime: "soon",
    parameters: [
      { ...NEW_PARAMETER, key: 5, name: "1x", low: "1", high: "0" },
      { ...NEW_PARAMETER, key: 6, name: "lr", low: "0", high: "1", log: true },
      { ...NEW_PARAMETER, key: 7, name: "lr", kind: "choice" as const, choices: "one" },
    ],
  };
  expect(Object.keys(problemsOf(wrong)).sort()).toEqual([
    "max_time_s",
    "metric",
    "parameters.5.high",
    "parameters.5.name",
    "parameters.6.low",
    "parameters.6.name",
    "parameters.7.choices",
    "parameters.7.name",
  ]);
  expect(problemsOf({ ...typed, maxTrials: "" }).max_trials).toBeDefined();
  expect(problemsOf({ ...typed, maxTrials: "", sampler: "grid" })).toEqual({});
});
