/** For fields in a grid: what is said of a field stands below it, so that fields beside each other are level. */
export const BELOW: { inputWrapperOrder: ("label" | "input" | "description" | "error")[] } = {
  inputWrapperOrder: ["label", "input", "description", "error"],
};
