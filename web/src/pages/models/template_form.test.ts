import { expect, test } from "vitest";
import { gather } from "../../files/chosen";
import { EMPTY, readToml, templateRequestOf, withFolder } from "./template_form";

const TOML = `
name = "images"
framework = "PyTorch"
main_file = "train.py"
engines = ["elastic", "single", "other"]

[[parameters]]
name = "width"
kind = "int"
default = 32
minimum = 4

[[parameters]]
name = "loss"
kind = "choice"
choices = ["mse", "l1"]
description = "Which one."
`;

test("a folder says what it is by its template.toml", async () => {
  const folder = await gather(
    [
      { path: "My code/train.py", file: new File(["x"], "train.py") },
      { path: "My code/template.toml", file: new File([TOML], "template.toml") },
    ],
    true,
  );
  if (folder === null) throw new Error("no folder");
  const form = await withFolder({ ...EMPTY, name: "mine" }, folder);
  expect(form).toMatchObject({ name: "images", mainFile: "train.py", engines: ["elastic", "single"] });
  expect(templateRequestOf(form).parameters).toEqual([
    { name: "width", kind: "int", default: 32, minimum: 4, maximum: null, description: "" },
    { name: "loss", kind: "choice", default: null, choices: ["mse", "l1"], description: "Which one." },
  ]);
});

test("a folder without one gives its name and its only script", async () => {
  const folder = await gather([{ path: "My code/net.py", file: new File(["x"], "net.py") }], true);
  if (folder === null) throw new Error("no folder");
  expect(await withFolder(EMPTY, folder)).toMatchObject({ name: "My-code", mainFile: "net.py", parameters: [] });
});

test("a description that cannot be read says nothing", () => {
  expect(readToml("name = ")).toEqual({});
  expect(readToml("name = 3\nengines = 'elastic'")).toEqual({});
});
