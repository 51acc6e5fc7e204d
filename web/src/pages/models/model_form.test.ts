import { expect, test } from "vitest";
import { changesOf, formOf, newForm, numbersOf, patchOf, requestOf, type Tables, typedValue } from "./model_form";

const number = (name: string, kind: Tables["numbers"][number]["kind"], value: string | number | null = null) => ({
  name,
  kind,
  default: value,
  description: "",
});
const TABLES: Tables = {
  numbers: [
    number("learning_rate", "float", 0.01),
    number("batch_size", "int", 32),
    number("test_batch_size", "int", 64),
    number("epochs", "int", 10),
    number("optimizer", "text", "SGD"),
    number("momentum", "float"),
    number("beta1", "float"),
    number("lr_policy", "text", "fixed"),
    number("lr_gamma", "float"),
    number("lr_milestones", "ints"),
  ],
  optimizers: [
    { name: "SGD", parameters: ["momentum"] },
    { name: "Adam", parameters: ["beta1"] },
  ],
  lr_policies: [
    { name: "fixed", needs: [], takes: [] },
    { name: "multistep", needs: ["lr_gamma", "lr_milestones"], takes: [] },
  ],
};
const WIDTH = {
  name: "width",
  kind: "int",
  default: 8,
  minimum: 1,
  maximum: 64,
  choices: [],
  description: "",
} as const;
const MODEL = {
  name: "digits",
  owner: "ada",
  description: "",
  settings: {
    template: "images",
    template_revision: 1,
    dataset: "flowers",
    data_dir: null,
    hyperparameters: {
      learning_rate: 0.1,
      batch_size: 32,
      test_batch_size: 64,
      epochs: 10,
      optimizer: "SGD",
      momentum: 0.9,
      lr_policy: "fixed",
      lr_milestones: [],
      lr_values: [],
    },
    parameters: { width: 8 },
    engine: "elastic",
    max_workers: 8,
    slots_per_worker: 1,
    priority: 5000,
    queue: "default",
    environment: null,
    histograms_every: null,
  },
  template_parameters: [{ ...WIDTH, choices: [] }],
  template_engines: ["elastic"],
  shared_with: [],
  num_trainings: 0,
  revision: 3,
  created_at: 0,
  changed_at: 0,
} satisfies Parameters<typeof formOf>[0];

test.each([
  ["int", "8", 8],
  ["int", "eight", "eight"],
  ["float", " 1e-3 ", 0.001],
  ["float", "", null],
  ["bool", "true", true],
  ["text", " as it is ", " as it is "],
  ["ints", "5, 10 15", [5, 10, 15]],
  ["floats", "0.1;x", [0.1, "x"]],
  ["choice", "", null],
] as const)("a field of the kind %s with %j is sent as %j", (kind, typed, sent) => {
  expect(typedValue(kind, typed)).toEqual(sent);
});

test("a new model sends what its optimizer has and its template asks for, and nothing that was left out", () => {
  const form = {
    ...newForm({ name: "images", engines: ["single", "elastic"] }),
    name: " digits ",
    dataset: "flowers",
    numbers: { optimizer: "Adam", momentum: "0.9", beta1: "0.8", epochs: "3" },
    parameters: { width: "16", gone: "1" },
  };
  const request = requestOf(form, TABLES, [{ ...WIDTH, choices: [] }]);
  expect(request).toMatchObject({ name: "digits", engine: "elastic", dataset: "flowers", environment: null });
  expect(request.hyperparameters).toEqual({ optimizer: "Adam", beta1: 0.8, epochs: 3, lr_policy: "fixed" });
  expect(request.parameters).toEqual({ width: 16 });
});

test("an edit sends what has changed, and goes back to the default where a field was emptied", () => {
  const form = formOf(MODEL);
  expect(patchOf(form, MODEL, TABLES)).toEqual({});
  const edited = {
    ...form,
    dataset: "",
    maxWorkers: 4,
    numbers: { ...form.numbers, optimizer: "Adam", epochs: "" },
    parameters: { width: "" },
  };
  expect(patchOf(edited, MODEL, TABLES)).toEqual({
    dataset: null,
    max_workers: 4,
    hyperparameters: { optimizer: "Adam", momentum: null, epochs: null },
    parameters: { width: null },
  });
});

test("a training sends what it has otherwise, and nothing of what is the model's alone", () => {
  const form = { ...formOf(MODEL), sharedWith: ["bob"], priority: 9000 };
  expect(changesOf(form, MODEL, TABLES)).toEqual({ priority: 9000 });
});

test("the fields are those of the optimizer and the policy that are chosen", () => {
  expect(numbersOf(TABLES, {}).ofOptimizer).toEqual(["momentum"]);
  const shown = numbersOf(TABLES, { optimizer: "Adam", lr_policy: "multistep" });
  expect([shown.ofOptimizer, shown.ofPolicy]).toEqual([["beta1"], ["lr_gamma", "lr_milestones"]]);
});
