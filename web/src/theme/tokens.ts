/** The colours of the console, once for each scheme. `tokens.test.ts` measures their contrast. */

export type Scheme = "light" | "dark";

export type StateTone = "waiting" | "starting" | "running" | "paused" | "completed" | "failed" | "stopped";

export interface Tokens {
  surface: string;
  raised: string;
  border: string;
  control: string;
  text: string;
  dim: string;
  focus: string;
  accent: string;
  /** Slots of people whose work one may not see, and of what is summed up. */
  others: string;
  /** Free slots, and time in which no server kept record. */
  free: string;
  state: Record<StateTone, string>;
  /** One hue each, told apart by the colour-blind, three to one against the surface. */
  work: readonly string[];
}

export const TOKENS: Record<Scheme, Tokens> = {
  light: {
    surface: "#FFFFFF",
    raised: "#F6F7F9",
    border: "#DEE2E6",
    control: "#868E96",
    text: "#1A1B1E",
    dim: "#5C6370",
    focus: "#1971C2",
    accent: "#1864AB",
    others: "#ADB5BD",
    free: "#E9ECEF",
    state: {
      waiting: "#8A5300",
      starting: "#0B7285",
      running: "#1864AB",
      paused: "#5F3DC4",
      completed: "#1E6B2E",
      failed: "#C92A2A",
      stopped: "#495057",
    },
    work: ["#577CBF", "#C97E5C", "#3B520E", "#8D0F6D", "#04A38F", "#877012", "#3542CC", "#BE4A65"],
  },
  dark: {
    surface: "#1A1B1E",
    raised: "#25262B",
    border: "#373A40",
    control: "#74798A",
    text: "#E9ECEF",
    dim: "#A6ADB8",
    focus: "#74C0FC",
    accent: "#74C0FC",
    others: "#5C6370",
    free: "#2C2E33",
    state: {
      waiting: "#FFC078",
      starting: "#66D9E8",
      running: "#74C0FC",
      paused: "#B197FC",
      completed: "#8CE99A",
      failed: "#FF8787",
      stopped: "#CED4DA",
    },
    work: ["#3472C5", "#A6603F", "#79AA15", "#F4A2D5", "#22AE9A", "#EBCF86", "#9B8DF8", "#F05E81"],
  },
};

/** How a workload's layer is drawn: one of eight hues, plain, hatched or dotted, by its number (0 to 23). */
export type Pattern = "plain" | "hatched" | "dotted";

export function hueOf(colour: number): number {
  return colour % 8;
}

export function patternOf(colour: number): Pattern {
  return (["plain", "hatched", "dotted"] as const)[Math.floor(colour / 8) % 3] ?? "plain";
}
