/**
 * Lines of logs as people may see them. Text of strangers: of all that a terminal obeys only colours and styles are
 * kept, `\r` begins the line anew as on a terminal, other control characters are made visible, and what a terminal
 * would do with its cursor, its title or its links is dropped. The result is text in pieces, never markup.
 */
export interface Style {
  /** One of sixteen colours, 0 to 15; null: as other text. */
  colour: number | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  struck: boolean;
  /** Written on a ground of its own. */
  marked: boolean;
}

export interface Piece {
  text: string;
  style: Style;
}

export const PLAIN: Style = {
  colour: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  struck: false,
  marked: false,
};
export const MAX_LINE = 10_000;

interface Cell {
  text: string;
  style: Style;
}

const ESCAPE = "\u001b";
/** Characters that change in which direction others are read. */
const DIRECTIONS = /[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/;

/** The pieces of a line, in order; neighbours of one style are one. */
export function piecesOf(line: string): Piece[] {
  const cells: Cell[] = [];
  let column = 0;
  let style = PLAIN;
  const characters = Array.from(line.endsWith("\r") ? line.slice(0, -1) : line);
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? "";
    if (character === ESCAPE) {
      const sequence = sequenceAt(characters, at);
      if (sequence !== null) {
        if (sequence.sgr !== null) style = styled(style, sequence.sgr);
        at = sequence.end;
        continue;
      }
    } else if (character === "\r") {
      column = 0;
      continue;
    } else if (character === "\b") {
      column = Math.max(0, column - 1);
      continue;
    }
    if (column >= MAX_LINE) break;
    cells[column] = { text: visible(character), style };
    column += 1;
  }
  return joined(cells);
}

/** The text of a line alone. */
export function plainOf(line: string): string {
  return piecesOf(line)
    .map((piece) => piece.text)
    .join("");
}

function joined(cells: readonly Cell[]): Piece[] {
  const pieces: Piece[] = [];
  for (const cell of cells) {
    const last = pieces.at(-1);
    if (last !== undefined && last.style === cell.style) last.text += cell.text;
    else pieces.push({ text: cell.text, style: cell.style });
  }
  return pieces;
}

/** The sequence that begins with an escape: where it ends, and its numbers if it sets colours or styles; null: none does. */
function sequenceAt(characters: readonly string[], start: number): { end: number; sgr: string | null } | null {
  const kind = characters[start + 1];
  if (kind === undefined) return null;
  if (kind === "[") return control(characters, start);
  if ("]PX^_".includes(kind)) return { end: endOfString(characters, start + 2), sgr: null };
  if ("()*+-./#%".includes(kind)) return { end: Math.min(start + 2, characters.length - 1), sgr: null };
  return kind >= "0" && kind <= "~" ? { end: start + 1, sgr: null } : null;
}

function control(characters: readonly string[], start: number): { end: number; sgr: string | null } {
  for (let at = start + 2; at < characters.length; at += 1) {
    const character = characters[at] ?? "";
    if (character >= "@" && character <= "~") {
      const parameters = characters.slice(start + 2, at).join("");
      return { end: at, sgr: character === "m" && /^[\d;:]*$/.test(parameters) ? parameters : null };
    }
    if (character < " " || character > "~") return { end: at - 1, sgr: null };
  }
  return { end: characters.length - 1, sgr: null };
}

/** Where a title, a link or the like ends: at a bell or `ESC \`. If it never does, its text is shown as text. */
function endOfString(characters: readonly string[], from: number): number {
  for (let at = from; at < characters.length; at += 1) {
    if (characters[at] === "\u0007" || characters[at] === "\u009c") return at;
    if (characters[at] === ESCAPE && characters[at + 1] === "\\") return at + 1;
  }
  return from - 1;
}

/** A control character as the sign that stands for it; others as they are. */
function visible(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === "\t") return character;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  if ((code >= 0x80 && code < 0xa0) || DIRECTIONS.test(character)) return "\ufffd";
  return character;
}

function styled(before: Style, parameters: string): Style {
  let style = { ...before };
  const codes = (parameters === "" ? "0" : parameters).split(/[;:]/).map((part) => (part === "" ? 0 : Number(part)));
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) style = { ...PLAIN };
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.marked = true;
    else if (code === 9) style.struck = true;
    else if (code === 22) style = { ...style, bold: false, dim: false };
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code === 27 || code === 49) style.marked = false;
    else if (code === 29) style.struck = false;
    else if (code >= 30 && code <= 37) style.colour = code - 30;
    else if (code === 39) style.colour = null;
    else if (code >= 90 && code <= 97) style.colour = code - 82;
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) style.marked = true;
    else if (code === 38 || code === 48) {
      const [colour, used] = longColour(codes.slice(at + 1));
      if (code === 38) style.colour = colour;
      else style.marked = true;
      at += used;
    }
  }
  return style;
}

/** A colour of 256, or of red, green and blue, as the nearest of sixteen; and how many numbers say it. */
function longColour(codes: readonly number[]): [number | null, number] {
  const [kind, first = 0, second = 0, third = 0] = codes;
  if (kind === 2) return [nearest(first, second, third), 4];
  if (kind !== 5) return [null, codes.length];
  if (first < 16) return [first, 2];
  if (first >= 232) return [nearest((first - 232) * 10 + 8, (first - 232) * 10 + 8, (first - 232) * 10 + 8), 2];
  const cube = first - 16;
  const part = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  return [nearest(part(Math.floor(cube / 36)), part(Math.floor(cube / 6) % 6), part(cube % 6)), 2];
}

/** The colour of sixteen with the nearest hue; greys are text, or dim. */
function nearest(red: number, green: number, blue: number): number | null {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  if (most - least < 40) return most > 140 ? null : 8;
  const limit = (most + least) / 2;
  const hue = Number(red > limit) + 2 * Number(green > limit) + 4 * Number(blue > limit);
  return most > 200 ? hue + 8 : hue;
}
