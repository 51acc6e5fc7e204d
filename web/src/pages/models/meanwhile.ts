import type { ModelForm } from "./model_form";

type Row = readonly [name: string, theirs: string, mine: string];

/** The fields that somebody else has changed, as they are now and as the form has them. */
export function differencesOf(before: ModelForm, theirs: ModelForm, mine: ModelForm): Row[] {
  const [was, is, has] = [flat(before), flat(theirs), flat(mine)];
  return [...is.keys()]
    .filter((name) => is.get(name) !== was.get(name))
    .map((name) => [name, is.get(name) ?? "", has.get(name) ?? ""]);
}

function flat({ numbers, parameters, sharedWith, ...rest }: ModelForm): Map<string, string> {
  return new Map([
    ...Object.entries(rest).map(([name, value]): [string, string] => [spaced(name), String(value)]),
    ...Object.entries(numbers),
    ...Object.entries(parameters),
    ["shared with", sharedWith.join(", ")],
  ]);
}

function spaced(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
