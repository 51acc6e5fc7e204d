const whole = new Intl.NumberFormat("en-US");

/** What is wrong with what is typed into a field. */
export const violation = {
  number: "A number is needed.",
  integer: "A whole number is needed.",
  between: (least: number, most: number) => `From ${whole.format(least)} to ${whole.format(most)}.`,
  atLeast: (least: number) => `${whole.format(least)} at least.`,
  atMost: (most: number) => `${whole.format(most)} at most.`,
  above: (limit: number) => `More than ${whole.format(limit)}.`,
  below: (limit: number) => `Less than ${whole.format(limit)}.`,
  shorter: (least: number) => (least === 1 ? "It cannot be empty." : `${least} characters at least.`),
  longer: (most: number, now: number) => `${whole.format(most)} characters at most; it has ${whole.format(now)}.`,
  form: "It is not in the form that is needed.",
  oneOf: (all: string) => `One of: ${all}.`,
  many: (most: number) => `${whole.format(most)} at most.`,
  at: (value: string, wrong: string) => `${value}: ${wrong}`,
  required: "It is needed.",
};
