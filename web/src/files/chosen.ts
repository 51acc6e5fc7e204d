/** What somebody has chosen or dropped: its files with their names, and what of it is left out. */
import { ALWAYS_IGNORED, IGNORE_FILE, Patterns, readPatterns } from "./patterns";
import { cleanName, type TarFile } from "./tar";

/** A file, and its way from what was chosen: `digits/train.py` of a folder, `train.py` of a file. */
export interface ChosenFile {
  path: string;
  file: File;
}

export interface Chosen {
  /** Of the folder, or of the only file. */
  name: string;
  isFolder: boolean;
  /** In the order of their names. */
  files: readonly (TarFile & { content: File })[];
  numBytes: number;
  /** Folders and files that are not sent. */
  leftOut: readonly string[];
  /** Names that cannot stand in an archive. */
  refused: readonly string[];
}

/** Put together what was chosen. A folder that holds all of it is no part of the names. */
export async function gather(given: readonly ChosenFile[], ignoring: boolean): Promise<Chosen | null> {
  const root = rootOf(given);
  const named = given.map(({ path, file }) => ({
    name: cleanName(root ? path.slice(root.length + 1) : path),
    file,
    path,
  }));
  const patterns = ignoring ? await patternsOf(named.find(({ name }) => name === IGNORE_FILE)?.file) : new Patterns([]);
  const leftOut = new Set<string>();
  const files: (TarFile & { content: File })[] = [];
  const refused: string[] = [];
  for (const { name, file, path } of named) {
    if (name === null) {
      refused.push(path);
      continue;
    }
    const left = patterns.leftOut(name);
    if (left === null) files.push({ name, content: file });
    else leftOut.add(left);
  }
  files.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const only = files.length === 1 && root === null ? files[0] : undefined;
  if (files.length === 0 && refused.length === 0 && leftOut.size === 0) return null;
  return {
    name: root ?? only?.name ?? "files",
    isFolder: only === undefined,
    files,
    numBytes: files.reduce((sum, file) => sum + file.content.size, 0),
    leftOut: [...leftOut].sort(),
    refused,
  };
}

function rootOf(given: readonly ChosenFile[]): string | null {
  const first = given[0]?.path.split("/")[0];
  if (first === undefined || first === "" || first === "." || first === "..") return null;
  return given.every(({ path }) => path.startsWith(`${first}/`)) ? first : null;
}

async function patternsOf(file: File | undefined): Promise<Patterns> {
  const own = file === undefined ? [] : readPatterns(await file.text());
  return new Patterns([...ALWAYS_IGNORED, ...own]);
}

/** The Python files, those at the top first. */
export function scriptsOf(chosen: Chosen): string[] {
  const depth = (name: string) => name.split("/").length;
  return chosen.files
    .map((file) => file.name)
    .filter((name) => name.endsWith(".py"))
    .sort((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1));
}

/** The script that is meant if nobody says so, as the command line has it; null if it is not clear. */
export function usualScript(chosen: Chosen): string | null {
  const top = scriptsOf(chosen).filter((name) => !name.includes("/"));
  if (!chosen.isFolder) return top[0] ?? null;
  return ["train.py", "main.py"].find((name) => top.includes(name)) ?? (top.length === 1 ? (top[0] ?? null) : null);
}

/** The requirements files, by their names. */
export function requirementsOf(chosen: Chosen): string[] {
  return chosen.files.map((file) => file.name).filter((name) => /(^|\/)requirements[^/]*\.txt$/.test(name));
}

/** The files of a field of a form. A folder's have their way in it. */
export function filesOf(list: FileList | null): ChosenFile[] {
  return [...(list ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** The files of what was dropped, folders and all. Folders that are never sent are not walked through. */
export async function droppedFiles(data: DataTransfer, ignoring: boolean): Promise<ChosenFile[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const never = new Patterns(ignoring ? ALWAYS_IGNORED : []);
  const found: ChosenFile[] = [];
  for (const entry of entries) await walk(entry, "", never, found);
  return found;
}

async function walk(entry: FileSystemEntry, above: string, never: Patterns, found: ChosenFile[]): Promise<void> {
  const path = above + entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((take, fail) => (entry as FileSystemFileEntry).file(take, fail));
    found.push({ path, file });
    return;
  }
  if (above !== "" && never.fit(entry.name, true)) {
    found.push({ path: `${path}/${entry.name}`, file: new File([], entry.name) }); // so that it is said
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((take, fail) => reader.readEntries(take, fail));
    if (some.length === 0) return;
    for (const inside of some) await walk(inside, `${path}/`, never, found);
  }
}
