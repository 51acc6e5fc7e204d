import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";
import { text } from "../text";
import { type Scheme, TOKENS } from "./tokens";

const BLUE: MantineColorsTuple = [
  "#E7F5FF",
  "#D0EBFF",
  "#A5D8FF",
  "#74C0FC",
  "#4DABF7",
  "#339AF0",
  "#1C7ED6",
  "#1971C2",
  "#1864AB",
  "#124B82",
];

/** What Mantine draws menus, fields and dialogs with in the dark: the surfaces and borders of the tokens, not its own grey. */
const DARK: MantineColorsTuple = [
  TOKENS.dark.text,
  TOKENS.dark.state.stopped,
  TOKENS.dark.dim,
  TOKENS.dark.control,
  TOKENS.dark.border,
  TOKENS.dark.free,
  TOKENS.dark.raised,
  TOKENS.dark.surface,
  "#141517",
  "#101113",
];

export const theme = createTheme({
  fontFamily: '"Inter Variable", system-ui, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SFMono-Regular", "DejaVu Sans Mono", Menlo, Consolas, monospace',
  primaryColor: "blue",
  primaryShade: { light: 8, dark: 8 },
  colors: { blue: BLUE, dark: DARK },
  defaultRadius: 6,
  radius: { xs: "3px", sm: "4px", md: "6px", lg: "8px", xl: "12px" },
  spacing: { xs: "8px", sm: "12px", md: "16px", lg: "24px", xl: "32px" },
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  lineHeights: { xs: "16px", sm: "20px", md: "20px", lg: "24px", xl: "28px" },
  headings: {
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "20px", lineHeight: "28px" },
      h2: { fontSize: "16px", lineHeight: "24px" },
      h3: { fontSize: "14px", lineHeight: "20px" },
    },
  },
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    InputWrapper: {
      // what is said of a field stands below it, so that fields beside each other are level
      defaultProps: { inputWrapperOrder: ["label", "input", "description", "error"] },
      vars: () => ({
        label: {},
        error: { "--input-error-size": "12px" },
        description: { "--input-description-size": "12px" },
      }),
    },
    CloseButton: { defaultProps: { "aria-label": text.close } },
    Button: { defaultProps: { size: "xs", fz: 14 } },
    TextInput: { defaultProps: { size: "xs" } },
    PasswordInput: { defaultProps: { size: "xs" } },
    NumberInput: { defaultProps: { size: "xs", thousandSeparator: "," } },
    Select: { defaultProps: { size: "xs", comboboxProps: { shadow: "md" } } },
    MultiSelect: { defaultProps: { size: "xs" } },
    Textarea: { defaultProps: { size: "xs" } },
    SegmentedControl: { defaultProps: { size: "xs" } },
    Tooltip: { defaultProps: { openDelay: 300, multiline: true, maw: 360, withArrow: true } },
    Modal: {
      defaultProps: {
        centered: true,
        transitionProps: { duration: 120 },
        closeButtonProps: { "aria-label": text.close },
      },
      styles: { title: { fontSize: 16, lineHeight: "24px", fontWeight: 600 } },
    },
    Menu: { defaultProps: { withInitialFocusPlaceholder: false, transitionProps: { duration: 120 } } },
    Drawer: { defaultProps: { closeButtonProps: { "aria-label": text.close } } },
  },
});

function variables(scheme: Scheme): Record<string, string> {
  const tokens = TOKENS[scheme];
  return {
    "--mantine-color-body": tokens.surface,
    "--mantine-color-text": tokens.text,
    "--mantine-color-dimmed": tokens.dim,
    "--mantine-color-placeholder": tokens.dim,
    "--mantine-color-anchor": tokens.accent,
    "--mantine-color-error": tokens.state.failed,
    "--mantine-color-default-border": tokens.control,
    "--surface": tokens.surface,
    "--raised": tokens.raised,
    "--border": tokens.border,
    "--control": tokens.control,
    "--dim": tokens.dim,
    "--accent": tokens.accent,
    "--focus": tokens.focus,
    "--others": tokens.others,
    "--free": tokens.free,
    ...Object.fromEntries(Object.entries(tokens.state).map(([tone, colour]) => [`--state-${tone}`, colour])),
    ...Object.fromEntries(tokens.work.map((colour, hue) => [`--work-${hue}`, colour])),
  };
}

export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: variables("light"),
  dark: variables("dark"),
});
