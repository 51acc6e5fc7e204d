import { type MantineColorScheme, useMantineColorScheme } from "@mantine/core";

export const SCHEMES = ["auto", "light", "dark"] as const satisfies readonly MantineColorScheme[];

/** The colours that one chose, and what chooses the next ones. */
export function useScheme(): [MantineColorScheme, () => void] {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const next = SCHEMES[(SCHEMES.indexOf(colorScheme) + 1) % SCHEMES.length] ?? "auto";
  return [colorScheme, () => setColorScheme(next)];
}
