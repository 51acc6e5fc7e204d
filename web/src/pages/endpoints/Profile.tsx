import { Alert, Button, NumberInput, Switch, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { useRevised } from "../../api/useRevised";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { QueueField } from "../../components/QueueField";
import { count, measure } from "../../format/format";
import { text } from "../../text";
import { endpointsChanged } from "./changed";
import { changingOf } from "./changing";
import classes from "./Endpoints.module.css";
import {
  boundsOf,
  changesOf,
  type Field,
  GROUPS,
  OPTIONAL,
  problemsOf,
  setElsewhere,
  type Typed,
  typedOf,
} from "./profile";
import type { EndpointView } from "./shown";

const words = text.endpoints.profile;

/** How it serves, field by field, with what each means; it can be changed while it serves. */
export function Profile({ endpoint }: { endpoint: EndpointView }) {
  const mayChange = useMay("endpoints:write");
  const owns = useOwns(endpoint.owner);
  const may = mayChange && owns;
  const canChange = useCanChange();
  const [typed, setTyped] = useState<Typed>({});
  const [base, setBase] = useState(endpoint);
  const untouched = Object.keys(typed).length === 0;
  if (untouched && base.revision !== endpoint.revision) setBase(endpoint);
  const save = useRevised({
    ...changingOf(endpoint.name),
    onSuccess: () => {
      setTyped({});
      notifications.show({ message: words.saved });
    },
    onSettled: endpointsChanged,
  });
  const changes = changesOf(base, typed);
  const wrong = problemsOf(typed);
  const isStale = save.error?.status === 412;
  const newest = save.theirs ?? endpoint;
  const theirs = isStale ? setElsewhere(base, newest, Object.values(GROUPS).flat()) : [];
  const numChanges = Object.keys(changes).length;
  const submit = () => save.mutate({ shown: base, body: changes });
  return (
    <Panel title={words.title} aside={<span className="dim">{may ? words.hint : words.readOnly}</span>}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (numChanges > 0 && Object.keys(wrong).length === 0) submit();
        }}
      >
        <div className={classes.groups}>
          {Object.entries(GROUPS).map(([group, fields]) => (
            <section key={group} aria-label={words.groups[group as keyof typeof GROUPS]}>
              <h3 className={classes.groupTitle}>{words.groups[group as keyof typeof GROUPS]}</h3>
              <div className={classes.fields}>
                {fields.map((field) => (
                  <FieldInput
                    key={field}
                    field={field}
                    value={typed[field] ?? typedOf(untouched ? endpoint : base, field)}
                    onChange={(value) => setTyped((before) => ({ ...before, [field]: value }))}
                    disabled={!may || !canChange}
                    error={
                      wrong[field] ??
                      save.error?.of(field) ??
                      (theirs.includes(field) ? words.theirs(String(typedOf(newest, field))) : null)
                    }
                  />
                ))}
              </div>
            </section>
          ))}
        </div>
        {may && (
          <div className={classes.foot}>
            <Button
              type="submit"
              loading={save.isPending}
              disabled={!canChange || numChanges === 0 || Object.keys(wrong).length > 0}
            >
              {words.save}
            </Button>
            <Button
              variant="default"
              disabled={untouched}
              onClick={() => {
                setTyped({});
                save.reset();
              }}
            >
              {words.reset}
            </Button>
            <span className="dim">{numChanges === 0 ? words.unchanged : words.changed(numChanges)}</span>
            {isStale ? (
              <Alert color="yellow" variant="outline" role="alert">
                {words.conflict}
              </Alert>
            ) : (
              save.error && <Problem error={save.error} />
            )}
          </div>
        )}
      </form>
    </Panel>
  );
}

interface FieldProps {
  field: Field;
  value: string | number | boolean;
  onChange: (value: string | number | boolean) => void;
  disabled: boolean;
  error: string | null;
}

function FieldInput({ field, value, onChange, disabled, error }: FieldProps) {
  const { label, doc, unit } = words.fields[field];
  const bounds = boundsOf(field);
  if (field === "idempotent") {
    return (
      <Switch
        label={label}
        description={doc}
        checked={value === true}
        disabled={disabled}
        error={error}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    );
  }
  if (field === "queue") {
    return (
      <QueueField
        label={label}
        description={doc}
        value={String(value)}
        onChange={onChange}
        disabled={disabled}
        error={error}
      />
    );
  }
  if (bounds === null) {
    return (
      <Textarea
        label={label}
        description={doc}
        autosize
        minRows={2}
        maxRows={8}
        value={String(value)}
        disabled={disabled}
        error={error}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  const write = bounds.whole ? count : measure;
  return (
    <NumberInput
      label={label}
      description={`${doc} ${words.bounds(write(bounds.low), write(bounds.high))}${unit ? ` ${unit}` : ""}.`}
      suffix={unit ? ` ${unit}` : ""}
      placeholder={OPTIONAL.includes(field) ? words.no : undefined}
      allowDecimal={!bounds.whole}
      clampBehavior="none"
      value={typeof value === "boolean" ? "" : value}
      disabled={disabled}
      error={error}
      onChange={onChange}
    />
  );
}
