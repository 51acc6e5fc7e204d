/**
 * What is not sent with code: the same patterns as those of the command line, which `src/pliant/files/ignore.py`
 * describes. `*`, `?` and `[…]` as in a shell; with `/` at the end for folders only, with `/` before it at the top only.
 */

export const IGNORE_FILE = ".pliantignore";
export const ALWAYS_IGNORED: readonly string[] = [
  ".git",
  "__pycache__",
  ".venv",
  "node_modules",
  ".ipynb_checkpoints",
  "*.pyc",
];
const MAX_PATTERNS = 500;

export class Patterns {
  readonly #patterns: readonly { folders: boolean; last: RegExp; whole: RegExp }[];

  constructor(patterns: readonly string[]) {
    this.#patterns = patterns.slice(0, MAX_PATTERNS).map((pattern) => {
      const bare = pattern.replace(/\/+$/, "");
      return { folders: bare !== pattern, last: translate(bare), whole: translate(bare.replace(/^\/+/, "")) };
    });
  }

  /** Whether one fits this name, given by its way from the top; folders above it are not looked at. */
  fit(name: string, isFolder: boolean): boolean {
    const last = name.slice(name.lastIndexOf("/") + 1);
    return this.#patterns.some(
      (pattern) => (isFolder || !pattern.folders) && (pattern.last.test(last) || pattern.whole.test(name)),
    );
  }

  /** What is left out because of a file's name: the topmost folder that fits, or the file; null if nothing does. */
  leftOut(name: string): string | null {
    for (let at = name.indexOf("/"); at >= 0; at = name.indexOf("/", at + 1)) {
      if (this.fit(name.slice(0, at), true)) return `${name.slice(0, at)}/`;
    }
    return this.fit(name, false) ? name : null;
  }
}

/** The patterns of a file: not its empty lines and its comments. */
export function readPatterns(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}

/** A pattern of a shell as an expression, as Python's `fnmatch` has it: `*` fits slashes, too. */
function translate(pattern: string): RegExp {
  let found = "";
  for (let at = 0; at < pattern.length; at += 1) {
    const sign = pattern.charAt(at);
    if (sign === "*") found += "[\\s\\S]*";
    else if (sign === "?") found += "[\\s\\S]";
    else if (sign === "[") {
      const end = pattern.indexOf("]", at + (pattern[at + 1] === "!" ? 3 : 2));
      if (end < 0) found += "\\[";
      else {
        found += setOf(pattern.slice(at + 1, end));
        at = end;
      }
    } else found += sign.replace(/[\\^$.|+(){}\]/]/g, "\\$&");
  }
  return new RegExp(`^(?:${found})$`, "u");
}

function setOf(inside: string): string {
  const signs = (inside.startsWith("!") ? inside.slice(1) : inside).replace(/[\\\]^[]/g, "\\$&");
  const set = `[${inside.startsWith("!") ? "^" : ""}${signs}]`;
  try {
    new RegExp(set, "u");
    return set;
  } catch {
    return "(?!)"; // a range that goes backwards fits nothing
  }
}
