import { expect, test } from "vitest";
import { type ChosenFile, gather, requirementsOf, scriptsOf, usualScript } from "./chosen";

function given(...paths: (string | [string, string])[]): ChosenFile[] {
  return paths.map((one) => {
    const [path, content] = typeof one === "string" ? [one, "x"] : one;
    return { path, file: new File([content], path.slice(path.lastIndexOf("/") + 1)) };
  });
}

test("a folder is the root of its files' names, and what is never sent is left out, and said", async () => {
  const chosen = await gather(
    given("digits/b.py", "digits/a/c.txt", "digits/.git/HEAD", "digits/.git/index", "digits/a/x.pyc"),
    true,
  );
  expect(chosen).toMatchObject({ name: "digits", isFolder: true, numBytes: 2, refused: [] });
  expect(chosen?.files.map((file) => file.name)).toEqual(["a/c.txt", "b.py"]);
  expect(chosen?.leftOut).toEqual([".git/", "a/x.pyc"]);
});

test("a folder's own file says what else is left out", async () => {
  const chosen = await gather(
    given(["p/.pliantignore", "# data\n*.pt\nruns/\n"], "p/a.py", "p/a.pt", "p/runs/1"),
    true,
  );
  expect(chosen?.files.map((file) => file.name)).toEqual([".pliantignore", "a.py"]);
  expect(chosen?.leftOut).toEqual(["a.pt", "runs/"]);
});

test("of data nothing is left out", async () => {
  expect((await gather(given("d/.git/a", "d/b.pyc"), false))?.files).toHaveLength(2);
});

test("a file alone keeps its name, and names that lead out are refused", async () => {
  expect(await gather(given("train.py"), true)).toMatchObject({ name: "train.py", isFolder: false });
  expect(await gather(given("p/../../x"), true)).toMatchObject({ files: [], refused: ["p/../../x"] });
  expect(await gather([], true)).toBeNull();
});

test("the script is the usual one, or the only one", async () => {
  const of = async (...paths: string[]) => {
    const chosen = await gather(given(...paths), true);
    return chosen && { usual: usualScript(chosen), all: scriptsOf(chosen) };
  };
  expect(await of("p/main.py", "p/b.py", "p/x/train.py")).toEqual({
    usual: "main.py",
    all: ["b.py", "main.py", "x/train.py"],
  });
  expect(await of("p/a.py", "p/b.py")).toMatchObject({ usual: null });
  expect(await of("p/x/a.py")).toMatchObject({ usual: null });
  expect(await of("a.py")).toMatchObject({ usual: "a.py" });
});

test("requirements are known by their names", async () => {
  const chosen = await gather(given("p/requirements-gpu.txt", "p/x/requirements.txt", "p/other.txt"), true);
  expect(chosen && requirementsOf(chosen)).toEqual(["requirements-gpu.txt", "x/requirements.txt"]);
});
