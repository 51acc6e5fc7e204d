import { ActionIcon, Button, Checkbox, Group, Text } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { Panel } from "../../components/Panel";
import { text } from "../../text";
import classes from "./Searches.module.css";
import { ChoiceOf, TextOf, useSearchForm } from "./search_fields";
import { type Kind, NEW_PARAMETER, nextKey, type TypedParameter } from "./search_form";

const words = text.searches.create;

/** What may be chosen. */
export function ParametersPanel() {
  const { typed, set } = useSearchForm();
  const rows = typed.parameters;
  const change = (key: number, part: Partial<TypedParameter>) =>
    set({ parameters: rows.map((one) => (one.key === key ? { ...one, ...part } : one)) });
  return (
    <Panel title={words.parameters}>
      <Text c="dimmed" mb="sm">
        {words.parametersHint}
      </Text>
      {rows.map((one, index) => (
        <ParameterRow
          key={one.key}
          parameter={one}
          earlier={rows.slice(0, index)}
          onChange={(part) => change(one.key, part)}
          onRemove={rows.length > 1 ? () => set({ parameters: rows.filter((other) => other.key !== one.key) }) : null}
        />
      ))}
      <Button
        variant="default"
        leftSection={<IconPlus size={16} />}
        disabled={rows.length >= 100}
        onClick={() => set({ parameters: [...rows, { ...NEW_PARAMETER, key: nextKey(rows) }] })}
      >
        {words.add}
      </Button>
    </Panel>
  );
}

interface RowProps {
  parameter: TypedParameter;
  /** Those before it, on which it may hang. */
  earlier: readonly TypedParameter[];
  onChange: (part: Partial<TypedParameter>) => void;
  onRemove: (() => void) | null;
}

function ParameterRow({ parameter, earlier, onChange, onRemove }: RowProps) {
  const { kind, log, key } = parameter;
  const field = (name: string) => `parameters.${key}.${name}`;
  const named = parameter.name.trim() || words.parameter;
  const end = (name: "low" | "high" | "step", label: string, disabled = false) => (
    <TextOf
      field={field(name)}
      label={label}
      disabled={disabled}
      value={disabled ? "" : parameter[name]}
      onChange={(value) => onChange({ [name]: value })}
    />
  );
  return (
    <fieldset className={classes.row} aria-label={named}>
      <div className={classes.parameter}>
        <TextOf
          field={field("name")}
          label={words.parameter}
          value={parameter.name}
          onChange={(value) => onChange({ name: value.trim() })}
        />
        <ChoiceOf<Kind>
          field={field("kind")}
          label={words.kind}
          options={words.kinds}
          value={kind}
          onChange={(next) => onChange({ kind: next })}
        />
        {kind === "choice" && (
          <div className={classes.wide}>
            <TextOf
              field={field("choices")}
              label={words.choices}
              placeholder={words.choicesHint}
              value={parameter.choices}
              onChange={(choices) => onChange({ choices })}
            />
          </div>
        )}
        {kind === "fixed" && (
          <div className={classes.wide}>
            <TextOf
              field={field("value")}
              label={words.value}
              value={parameter.value}
              onChange={(value) => onChange({ value })}
            />
          </div>
        )}
        {(kind === "float" || kind === "int") && (
          <>
            {end("low", words.low)}
            {end("high", words.high)}
            {end("step", words.step, log)}
            <Checkbox
              size="xs"
              mt={26}
              label={words.log}
              aria-label={words.logLabel(named)}
              checked={log}
              onChange={(event) => onChange({ log: event.currentTarget.checked })}
            />
          </>
        )}
        {onRemove && <Remove label={words.removeParameter(named)} onClick={onRemove} />}
      </div>
      <Conditions parameter={parameter} earlier={earlier} onChange={onChange} />
    </fieldset>
  );
}

function Conditions({ parameter, earlier, onChange }: Omit<RowProps, "onRemove">) {
  const { when, key } = parameter;
  const names = earlier.map((one) => one.name.trim()).filter((name) => name !== "");
  if (when.length === 0 && names.length === 0) return null;
  const free = names.filter((name) => !when.some((one) => one.of === name));
  return (
    <>
      {when.map((one) => {
        const change = (part: object) =>
          onChange({ when: when.map((other) => (other.key === one.key ? { ...other, ...part } : other)) });
        return (
          <Group key={one.key} gap="sm" align="flex-start" wrap="nowrap" className={classes.condition}>
            <ChoiceOf
              field={`parameters.${key}.when.${one.key}.of`}
              label={words.onlyIf}
              options={Object.fromEntries([one.of, ...free].filter((name) => name !== "").map((name) => [name, name]))}
              value={one.of}
              onChange={(of) => change({ of })}
            />
            <TextOf
              field={`parameters.${key}.when.${one.key}.values`}
              label={words.isOne}
              placeholder={words.choicesHint}
              value={one.values}
              onChange={(values) => change({ values })}
            />
            <Remove
              label={words.removeCondition(one.of)}
              onClick={() => onChange({ when: when.filter((other) => other.key !== one.key) })}
            />
          </Group>
        );
      })}
      {free.length > 0 && (
        <Button
          variant="subtle"
          color="gray"
          size="compact-xs"
          mb="sm"
          leftSection={<IconPlus size={14} />}
          onClick={() => onChange({ when: [...when, { key: nextKey(when), of: free[0] ?? "", values: "" }] })}
        >
          {words.addCondition}
        </Button>
      )}
    </>
  );
}

export function Remove({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <ActionIcon mt={21} size={30} variant="subtle" color="gray" aria-label={label} onClick={onClick}>
      <IconTrash size={16} />
    </ActionIcon>
  );
}
