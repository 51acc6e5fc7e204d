/**
 * The form of a model: what is written into its fields, and what is asked of the server then. A field holds what was
 * typed; what is no number goes to the server as it is, which says so in its own words.
 */
import type { Schemas } from "../../api/client";

export type Tables = Schemas["HyperparameterTables"];
export type Parameter = Schemas["Parameter"];
type Model = Schemas["ModelView"];
type Settings = Schemas["ModelSettings"];
type Kind = Schemas["HyperparameterView"]["kind"] | Parameter["kind"];
/** By names, as their fields show them; empty: left out. */
export type Entered = Readonly<Record<string, string>>;

export interface ModelForm {
  name: string;
  template: string;
  description: string;
  engine: Settings["engine"];
  dataset: string;
  environment: string;
  queue: string;
  priority: number;
  maxWorkers: number;
  slotsPerWorker: number;
  /** As it was typed; empty: none. */
  histogramsEvery: string;
  numbers: Entered;
  parameters: Entered;
  sharedWith: readonly string[];
}

/** What a form of a new model begins with. */
export function newForm(template: { name: string; engines: readonly Settings["engine"][] } | null): ModelForm {
  const engines = template?.engines ?? [];
  return {
    name: "",
    template: template?.name ?? "",
    description: "",
    engine: engines.includes("elastic") ? "elastic" : (engines[0] ?? "elastic"),
    dataset: "",
    environment: "",
    queue: "default",
    priority: 5000,
    maxWorkers: 1,
    slotsPerWorker: 1,
    histogramsEvery: "",
    numbers: {},
    parameters: {},
    sharedWith: [],
  };
}

/** The form of a model that is there. */
export function formOf(model: Model): ModelForm {
  const { settings } = model;
  return {
    name: model.name,
    template: settings.template,
    description: model.description,
    engine: settings.engine,
    dataset: settings.dataset ?? "",
    environment: settings.environment ?? "",
    queue: settings.queue,
    priority: settings.priority,
    maxWorkers: settings.max_workers,
    slotsPerWorker: settings.slots_per_worker,
    histogramsEvery: written(settings.histograms_every),
    numbers: entered(settings.hyperparameters),
    parameters: entered(settings.parameters),
    sharedWith: model.shared_with,
  };
}

export function entered(values: Readonly<Record<string, unknown>>): Entered {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, written(value)]));
}

/** A value as its field shows it. */
export function written(value: unknown): string {
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** What was typed, as the server takes it; null: left out. */
export function typedValue(kind: Kind, typed: string): unknown {
  const trimmed = typed.trim();
  if (kind === "text" || kind === "choice") return typed === "" ? null : typed;
  if (trimmed === "") return null;
  if (kind === "bool") return trimmed === "true" ? true : trimmed === "false" ? false : trimmed;
  if (kind === "ints" || kind === "floats") return trimmed.split(/[\s,;]+/).map(numberOf);
  return numberOf(trimmed);
}

function numberOf(typed: string): number | string {
  const number = Number(typed);
  return Number.isFinite(number) ? number : typed;
}

const ALWAYS = ["epochs", "batch_size", "test_batch_size", "learning_rate"];

/** The numbers that a form shows, by groups: those of every training, of its optimizer, and of its policy. */
export function numbersOf(tables: Tables, numbers: Entered) {
  const optimizer = numbers.optimizer || (defaultOf(tables, "optimizer") ?? "");
  const policy = numbers.lr_policy || (defaultOf(tables, "lr_policy") ?? "");
  const of = tables.lr_policies.find((one) => one.name === policy);
  return {
    optimizer,
    policy,
    always: ALWAYS,
    ofOptimizer: tables.optimizers.find((one) => one.name === optimizer)?.parameters ?? [],
    needed: of?.needs ?? [],
    ofPolicy: [...(of?.needs ?? []), ...(of?.takes ?? [])],
  };
}

export function defaultOf(tables: Tables, name: string): string | null {
  const found = tables.numbers.find((number) => number.name === name)?.default;
  return found == null ? null : String(found);
}

/** The numbers as the server takes them: those that the form shows; null for those that it does not, or that are empty. */
function numbersToSend(tables: Tables, numbers: Entered): Record<string, unknown> {
  const { always, ofOptimizer, ofPolicy, optimizer, policy } = numbersOf(tables, numbers);
  const shown = new Set([...always, ...ofOptimizer, ...ofPolicy]);
  const all = tables.numbers.map(({ name, kind }) => [
    name,
    name === "optimizer"
      ? optimizer
      : name === "lr_policy"
        ? policy
        : shown.has(name)
          ? typedValue(kind, numbers[name] ?? "")
          : null,
  ]);
  return Object.fromEntries(all);
}

function parametersToSend(declared: readonly Parameter[], given: Entered): Record<string, unknown> {
  return Object.fromEntries(declared.map(({ name, kind }) => [name, typedValue(kind, given[name] ?? "")]));
}

function given<T>(values: Record<string, T | null>): Record<string, T> {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, T] => entry[1] !== null));
}

/** What makes a new model. */
export function requestOf(form: ModelForm, tables: Tables, declared: readonly Parameter[]): Schemas["ModelRequest"] {
  const body = {
    name: form.name.trim(),
    template: form.template,
    description: form.description,
    engine: form.engine,
    dataset: form.dataset || null,
    environment: form.environment || null,
    queue: form.queue,
    priority: form.priority,
    max_workers: form.engine === "single" ? 1 : form.maxWorkers,
    slots_per_worker: form.slotsPerWorker,
    histograms_every: form.engine === "distributed" ? null : typedValue("int", form.histogramsEvery),
    hyperparameters: given(numbersToSend(tables, form.numbers)),
    parameters: given(parametersToSend(declared, form.parameters)),
    shared_with: form.sharedWith,
  };
  return body as Schemas["ModelRequest"];
}

/** What changes a model into what the form says; nothing of what is as it was. */
export function patchOf(form: ModelForm, model: Model, tables: Tables): Schemas["ModelPatch"] {
  const before = requestLike(formOf(model), model, tables);
  const after = requestLike(form, model, tables);
  return difference(before, after) as Schemas["ModelPatch"];
}

/** What a training shall have otherwise than its model: a part of what the form of one says. */
export function changesOf(form: ModelForm, model: Model, tables: Tables): Record<string, unknown> {
  const changes = difference(requestLike(formOf(model), model, tables), requestLike(form, model, tables));
  const { description: _, shared_with: __, ...rest } = changes;
  return rest;
}

type Sent = Record<string, unknown>;

function requestLike(form: ModelForm, model: Model, tables: Tables): Sent {
  const { name: _, template: __, ...rest } = requestOf(form, tables, []) as unknown as Sent;
  const parameters = parametersToSend(model.template_parameters, form.parameters);
  return { ...rest, hyperparameters: numbersToSend(tables, form.numbers), parameters };
}

function difference(before: Sent, after: Sent): Sent {
  const changes: Sent = {};
  for (const [name, value] of Object.entries(after)) {
    if (name === "hyperparameters" || name === "parameters") {
      const inner = difference(before[name] as Sent, value as Sent);
      if (Object.keys(inner).length > 0) changes[name] = inner;
    } else if (JSON.stringify(before[name]) !== JSON.stringify(value)) changes[name] = value;
  }
  return changes;
}
