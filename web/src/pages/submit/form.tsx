/** What is typed into the form, kept in the address of the page as far as it is no secret; and its fields. */
import { NumberInput, Select, Textarea, TextInput } from "@mantine/core";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useState } from "react";
import type { Refused } from "../../api/problem";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import { FIELD_NAMES, type FieldName, fieldOf, type Typed } from "./fields";
import type { Problems } from "./request";

const TYPING_MS = 400;
const words = text.submission;

export interface Form {
  typed: Typed;
  set: (name: FieldName, value: string) => void;
  /** What is wrong with a field that was touched. */
  errorOf: (name: FieldName) => string | null;
}

const FormContext = createContext<Form | null>(null);

export function useForm(): Form {
  const form = useContext(FormContext);
  if (form === null) throw new Error("there is no form here");
  return form;
}

export function FormProvider({ form, children }: { form: Form; children: ReactNode }) {
  return <FormContext.Provider value={form}>{children}</FormContext.Provider>;
}

/** What is typed: `base` at first, and what the address says. */
export function useTyped(base: Typed) {
  const address = useAddress();
  const [typed, setTyped] = useState<Typed>(() => {
    const given = FIELD_NAMES.map((name) => [name, fieldOf(name).secret ? null : address.get(name)] as const);
    return { ...base, ...Object.fromEntries(given.filter(([, value]) => value !== null)) };
  });
  const [touched, setTouched] = useState<ReadonlySet<FieldName>>(new Set());
  const set = useCallback((name: FieldName, value: string) => {
    setTyped((before) => ({ ...before, [name]: value }));
    setTouched((before) => new Set(before).add(name));
  }, []);
  const { set: setAddress } = address;
  useEffect(() => {
    const timer = window.setTimeout(() => {
      const shown = FIELD_NAMES.filter((name) => !fieldOf(name).secret);
      setAddress(
        Object.fromEntries(
          shown.map((name) => [name, (typed[name] ?? "") === (base[name] ?? "") ? null : (typed[name] ?? null)]),
        ),
      );
    }, TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [typed, base, setAddress]);
  return { typed, set, touched };
}

/** What is wrong with a field: what the server has refused until it is typed anew, else what is known here. */
export function errorsOf(
  problems: Problems,
  preview: readonly { field: string; message: string }[],
  refused: Refused | null,
  shown: (name: FieldName) => boolean,
): (name: FieldName) => string | null {
  return (name) => {
    const said = messageFor(refused?.problems ?? [], name);
    if (said !== null) return said;
    return shown(name) ? (problems[name] ?? messageFor(preview, name)) : null;
  };
}

/** What is said of a field, or of a part of it: `after.0` is one of `after`. */
function messageFor(said: readonly { field: string; message: string }[], name: FieldName): string | null {
  const found = said.find(({ field }) => field === name || field.startsWith(`${name}.`));
  return found?.message ?? null;
}

interface FieldProps {
  name: FieldName;
  label?: string;
  hint?: string;
  placeholder?: string;
  disabled?: boolean;
}

export function TextField({ name, label, hint, placeholder, disabled }: FieldProps) {
  const { typed, set, errorOf } = useForm();
  return (
    <TextInput
      label={label ?? words.fields[name]}
      description={hint}
      placeholder={placeholder}
      disabled={disabled}
      spellCheck={false}
      autoComplete="off"
      value={typed[name] ?? ""}
      error={errorOf(name)}
      onChange={(event) => set(name, event.currentTarget.value)}
    />
  );
}

export function LinesField({ name, hint }: FieldProps) {
  const { typed, set, errorOf } = useForm();
  return (
    <Textarea
      label={words.fields[name]}
      description={hint}
      autosize
      minRows={2}
      maxRows={8}
      spellCheck={false}
      classNames={{ input: "mono" }}
      value={typed[name] ?? ""}
      error={errorOf(name)}
      onChange={(event) => set(name, event.currentTarget.value)}
    />
  );
}

export function NumberField({ name, label, hint, placeholder }: FieldProps) {
  const { typed, set, errorOf } = useForm();
  const value = typed[name] ?? "";
  return (
    <NumberInput
      label={label ?? words.fields[name]}
      description={hint}
      placeholder={placeholder}
      allowDecimal={fieldOf(name).kind === "number"}
      clampBehavior="none"
      min={0}
      value={value === "" || !Number.isFinite(Number(value)) ? value : Number(value)}
      error={errorOf(name)}
      onChange={(next) => set(name, String(next))}
    />
  );
}

interface ChoiceProps extends FieldProps {
  options: readonly { value: string; label: string }[];
  searchable?: boolean;
  clearable?: boolean;
}

/** One of some values; one that is not among them is shown as it is. */
export function ChoiceField({ name, options, hint, placeholder, searchable, clearable }: ChoiceProps) {
  const { typed, set, errorOf } = useForm();
  const value = typed[name] ?? "";
  const all =
    value === "" || options.some((one) => one.value === value) ? options : [...options, { value, label: value }];
  return (
    <Select
      label={words.fields[name]}
      description={hint}
      placeholder={placeholder}
      data={all}
      searchable={searchable}
      clearable={clearable}
      allowDeselect={false}
      value={value === "" ? null : value}
      error={errorOf(name)}
      onChange={(next) => set(name, next ?? "")}
    />
  );
}
