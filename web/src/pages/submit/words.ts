/** Words of a command line: apart and together, as a POSIX shell has them; and how Python writes a value. */

/** The words of a line; null if a quote is not closed, or the line ends with a backslash. */
export function splitWords(line: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const sign = line.charAt(at);
    if (quote !== "") {
      if (sign === quote) quote = "";
      else if (sign === "\\" && quote === '"' && /["\\$`]/.test(line.charAt(at + 1))) word += line.charAt(++at);
      else word += sign;
    } else if (sign === "'" || sign === '"') {
      quote = sign;
      word ??= "";
    } else if (sign === "\\") {
      at += 1;
      if (at >= line.length) return null;
      word = (word ?? "") + line.charAt(at);
    } else if (/\s/.test(sign)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + sign;
  }
  if (quote !== "") return null;
  if (word !== null) words.push(word);
  return words;
}

/** A word as a shell takes it literally. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

export function joinWords(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}

/** A value as a literal of Python. */
export function pythonOf(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return JSON.stringify(value).replaceAll("\u007f", "\\x7f");
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value)
      .map(([key, one]) => `${pythonOf(key)}: ${pythonOf(one)}`)
      .join(", ")}}`;
  }
  return String(value);
}
