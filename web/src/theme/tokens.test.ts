import { expect, test } from "vitest";
import { hueOf, patternOf, type Scheme, TOKENS } from "./tokens";

/** The relative luminance of a colour, and the contrast of two, as WCAG 2.2 defines them. */
function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

const SCHEMES: Scheme[] = ["light", "dark"];

test.each(SCHEMES)("text and states are read on every surface: %s", (scheme) => {
  const tokens = TOKENS[scheme];
  for (const colour of [tokens.text, tokens.dim, tokens.accent, ...Object.values(tokens.state)]) {
    expect(contrast(colour, tokens.surface), colour).toBeGreaterThanOrEqual(4.5);
    expect(contrast(colour, tokens.raised), colour).toBeGreaterThanOrEqual(4.5);
  }
});

test.each(SCHEMES)("layers, borders of controls and the focus ring are told from the surface: %s", (scheme) => {
  const tokens = TOKENS[scheme];
  for (const colour of [...tokens.work, tokens.control, tokens.focus]) {
    expect(contrast(colour, tokens.surface), colour).toBeGreaterThanOrEqual(3);
  }
});

/** What somebody without one kind of cones sees of a colour (Machado, Oliveira, Fernandes 2009, full severity), linear. */
const SEEN: Record<string, number[][]> = {
  all: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function labOf(colour: string, seen: number[][]): [number, number, number] {
  const linear = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const dot = (row: number[], vector: number[]) =>
    row.reduce((sum, value, index) => sum + value * (vector[index] ?? 0), 0);
  const rgb = seen.map((row) => Math.min(1, Math.max(0, dot(row, linear))));
  const [x, y, z] = [
    dot([0.4124, 0.3576, 0.1805], rgb) / 0.95047,
    dot([0.2126, 0.7152, 0.0722], rgb),
    dot([0.0193, 0.1192, 0.9505], rgb) / 1.08883,
  ].map((value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116)) as [number, number, number];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

test.each(SCHEMES.flatMap((scheme) => Object.keys(SEEN).map((kind) => [scheme, kind] as const)))(
  "layers are told apart: %s, %s",
  (scheme, kind) => {
    const colours = TOKENS[scheme].work.map((colour) => labOf(colour, SEEN[kind] ?? []));
    const distances = colours.flatMap((one, index) =>
      colours.slice(index + 1).map((other) => Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2])),
    );
    expect(Math.min(...distances)).toBeGreaterThan(kind === "all" ? 20 : 11);
  },
);

test("24 numbers are 24 looks", () => {
  const looks = Array.from({ length: 24 }, (_, colour) => `${hueOf(colour)} ${patternOf(colour)}`);
  expect(new Set(looks).size).toBe(24);
});
