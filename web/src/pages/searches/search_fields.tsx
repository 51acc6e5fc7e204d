/** What is typed of a search, and fields of it that say what is wrong with them: what is known here, or the server says. */
import { NumberInput, Select, Textarea, TextInput } from "@mantine/core";
import { createContext, type ReactNode, useContext } from "react";
import type { TypedSearch } from "./search_form";

export interface SearchForm {
  typed: TypedSearch;
  set: (change: Partial<TypedSearch>) => void;
  /** What is wrong with a field that was left, or with any once somebody has tried to begin. */
  errorOf: (field: string) => string | null;
}

const FormContext = createContext<SearchForm | null>(null);

export function useSearchForm(): SearchForm {
  const form = useContext(FormContext);
  if (form === null) throw new Error("there is no form of a search here");
  return form;
}

export function SearchFormProvider({ form, children }: { form: SearchForm; children: ReactNode }) {
  return <FormContext.Provider value={form}>{children}</FormContext.Provider>;
}

interface Props {
  /** Of the form; its `name`, too, by which it is known which fields were left. */
  field: string;
  label: string;
  hint?: string | undefined;
  placeholder?: string | undefined;
  value: string;
  onChange: (value: string) => void;
  disabled?: boolean;
  required?: boolean;
}

export function TextOf({ field, hint, onChange, ...rest }: Props) {
  const { errorOf } = useSearchForm();
  return (
    <TextInput
      {...rest}
      name={field}
      description={hint}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => onChange(event.currentTarget.value)}
      error={errorOf(field)}
    />
  );
}

export function LinesOf({ field, hint, onChange, ...rest }: Props) {
  const { errorOf } = useSearchForm();
  return (
    <Textarea
      {...rest}
      name={field}
      description={hint}
      autosize
      minRows={1}
      maxRows={8}
      spellCheck={false}
      classNames={{ input: "mono" }}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={errorOf(field)}
    />
  );
}

export function NumberOf({ field, hint, onChange, value, decimal = false, ...rest }: Props & { decimal?: boolean }) {
  const { errorOf } = useSearchForm();
  return (
    <NumberInput
      {...rest}
      name={field}
      description={hint}
      allowDecimal={decimal}
      allowNegative={decimal}
      clampBehavior="none"
      value={value === "" || !Number.isFinite(Number(value)) ? value : Number(value)}
      onChange={(next) => onChange(String(next))}
      error={errorOf(field)}
    />
  );
}

interface ChoiceProps<T extends string> extends Omit<Props, "onChange" | "value"> {
  value: T;
  onChange: (value: T) => void;
  options: Readonly<Partial<Record<T, string>>>;
  searchable?: boolean;
}

export function ChoiceOf<T extends string>({ field, hint, onChange, value, options, ...rest }: ChoiceProps<T>) {
  const { errorOf } = useSearchForm();
  const data = Object.entries(options).map(([key, label]) => ({ value: key, label: label as string }));
  if (!data.some((one) => one.value === value) && value !== "") data.unshift({ value, label: value });
  return (
    <Select
      {...rest}
      description={hint}
      allowDeselect={false}
      data={data}
      value={value === "" && !data.some((one) => one.value === "") ? null : value}
      onChange={(next) => onChange((next ?? value) as T)}
      error={errorOf(field)}
    />
  );
}
