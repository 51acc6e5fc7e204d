import { type MantineColorScheme, useMantineColorScheme } from "@mantine/core";

const ORDER: readonly MantineColorScheme[] = ["auto", "light", "dark"];

/** The colours that one chose, and what chooses the next ones. */
export function useScheme(): [MantineColorScheme, () => void] {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const next = ORDER[(ORDER.indexOf(colorScheme) + 1) % ORDER.length] ?? "auto";
  return [colorScheme, () => setColorScheme(next)];
}
