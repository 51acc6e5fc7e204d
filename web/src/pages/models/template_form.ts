/** The form of a template: what `template.toml` in its folder says, what is written into the fields, and what is sent. */
import { parse } from "smol-toml";
import type { Schemas } from "../../api/client";
import { type Chosen, scriptsOf } from "../../files/chosen";
import { typedValue, written } from "./model_form";

type Template = Schemas["TemplateView"];
type Kind = Schemas["Parameter"]["kind"];
type Engine = Template["engines"][number];

export const ENGINES: readonly Engine[] = ["elastic", "single", "distributed"];
export const KINDS: readonly Kind[] = ["int", "float", "bool", "text", "choice"];

/** A parameter as its fields show it. */
export interface ParameterFields {
  name: string;
  kind: Kind;
  default: string;
  minimum: string;
  maximum: string;
  choices: string;
  description: string;
}

export interface TemplateForm {
  name: string;
  framework: string;
  mainFile: string;
  elasticFile: string;
  description: string;
  engines: readonly Engine[];
  parameters: readonly ParameterFields[];
  sharedWith: readonly string[];
}

export const EMPTY: TemplateForm = {
  name: "",
  framework: "PyTorch",
  mainFile: "main.py",
  elasticFile: "",
  description: "",
  engines: ENGINES,
  parameters: [],
  sharedWith: [],
};

export const NEW_PARAMETER: ParameterFields = {
  name: "",
  kind: "float",
  default: "",
  minimum: "",
  maximum: "",
  choices: "",
  description: "",
};

export function templateFormOf(template: Template): TemplateForm {
  return {
    name: template.name,
    framework: template.framework,
    mainFile: template.main_file,
    elasticFile: template.elastic_file ?? "",
    description: template.description,
    engines: template.engines,
    parameters: template.parameters.map(fieldsOf),
    sharedWith: template.shared_with,
  };
}

function fieldsOf(parameter: Partial<Record<string, unknown>>): ParameterFields {
  const kind = KINDS.find((one) => one === parameter.kind) ?? "text";
  return {
    name: written(parameter.name),
    kind,
    default: written(parameter.default),
    minimum: written(parameter.minimum),
    maximum: written(parameter.maximum),
    choices: written(parameter.choices),
    description: written(parameter.description),
  };
}

/** What the server is sent beside the files. */
export function templateRequestOf(form: TemplateForm): Record<string, unknown> {
  return {
    name: form.name.trim(),
    framework: form.framework.trim(),
    main_file: form.mainFile.trim(),
    elastic_file: form.elasticFile.trim() || null,
    description: form.description,
    engines: form.engines,
    parameters: form.parameters.map((one) => ({
      name: one.name.trim(),
      kind: one.kind,
      description: one.description,
      default: typedValue(one.kind, one.default),
      ...(isNumber(one.kind) && {
        minimum: typedValue("float", one.minimum),
        maximum: typedValue("float", one.maximum),
      }),
      ...(one.kind === "choice" && {
        choices: one.choices
          .split(",")
          .map((word) => word.trim())
          .filter(Boolean),
      }),
    })),
    shared_with: form.sharedWith,
  };
}

export function isNumber(kind: Kind): boolean {
  return kind === "int" || kind === "float";
}

/** The form with what a folder says of itself; names that were written already stay. */
export async function withFolder(form: TemplateForm, folder: Chosen): Promise<TemplateForm> {
  const description = folder.files.find(({ name }) => name === "template.toml");
  const said = description === undefined ? {} : readToml(await description.content.text());
  const scripts = scriptsOf(folder).filter((name) => !name.includes("/"));
  const main = scripts.includes(form.mainFile) ? form.mainFile : (scripts[0] ?? form.mainFile);
  return { ...form, name: form.name || nameFrom(folder.name), mainFile: main, ...said };
}

/** The fields that a `template.toml` has; none of one that cannot be read, which the server says. */
export function readToml(content: string): Partial<TemplateForm> {
  let said: Record<string, unknown>;
  try {
    said = parse(content);
  } catch {
    return {};
  }
  const words = (value: unknown) => (typeof value === "string" ? value : undefined);
  const list = (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : undefined);
  const found: { [K in keyof TemplateForm]?: TemplateForm[K] | undefined } = {
    name: words(said.name),
    framework: words(said.framework),
    mainFile: words(said.main_file),
    elasticFile: words(said.elastic_file),
    description: words(said.description),
    engines: list(said.engines)?.filter((one): one is Engine => ENGINES.includes(one as Engine)),
    parameters: list(said.parameters)
      ?.filter((one): one is Record<string, unknown> => typeof one === "object" && one !== null)
      .map(fieldsOf),
    sharedWith: list(said.shared_with)?.map(String),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/** A name that the server takes, from that of a folder. */
function nameFrom(folder: string): string {
  return folder
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 50);
}
