/** Labels as lines of NAME=VALUE, as people write them. */

/** Return one line for each label. */
export function linesOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");
}

/** Return the first line that is no label; null if all are. */
export function wrongLine(lines: string): string | null {
  return written(lines).find((line) => line.indexOf("=") < 1) ?? null;
}

/** Return the labels that lines say, of one name the last. */
export function readLabels(lines: string): Record<string, string> {
  return Object.fromEntries(
    written(lines).map((line) => {
      const at = line.indexOf("=");
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

function written(lines: string): string[] {
  return lines
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
