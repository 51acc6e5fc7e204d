/** The newest of a log as plain text: colours and moves of the cursor are left out, lines of any length are cut. */

const MAX_LINE = 2_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g;

export function plainText(log: string): string {
  return log
    .split("\n")
    .map((line) => {
      const shown = (line.replace(/\r$/, "").split("\r").at(-1) ?? "").replace(ESCAPES, "").replace(CONTROLS, "�");
      return shown.length > MAX_LINE ? `${shown.slice(0, MAX_LINE)}…` : shown;
    })
    .join("\n");
}
