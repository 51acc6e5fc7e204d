import { type RefObject, useEffect, useRef } from "react";
import { Refused } from "../../api/problem";

/**
 * What is wrong with each field of a form, and what is left to say of a refusal: nothing if every problem stands
 * beside its field.
 */
export function wrongOf(
  error: Refused | null,
  fields: RegExp,
): { wrong: (field: string) => string | null; rest: Refused | null } {
  const wrong = (field: string) => error?.of(field) ?? null;
  if (error === null) return { wrong, rest: null };
  const others = error.problems.filter((problem) => !fields.test(problem.field));
  if (error.problems.length > 0 && others.length === 0) return { wrong, rest: null };
  if (error.problems.length === 0) return { wrong, rest: error };
  const message = others.map((problem) => `${problem.field}: ${problem.message}`).join("; ");
  return { wrong, rest: new Refused(error.status, message, others) };
}

/** The form that this stands at shows the first of its fields that an error is about. */
export function useFocusWrong(error: Refused | null): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (error !== null) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [error]);
  return form;
}
