import { Button, Checkbox, Group, NumberInput, Slider, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../../api/client";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { Dialog } from "../../components/Dialog";
import { Problem } from "../../components/Notice";
import { text } from "../../text";
import { CompareLink } from "./CompareLink";
import classes from "./Jobs.module.css";

const words = text.jobs;
export const MAX_PRIORITY = 10_000;
/** As many as the server takes at once. */
const MAX_IDS = 1000;

interface Props {
  ids: ReadonlySet<string>;
  onClear: () => void;
}

/** What can be done with the jobs that are selected. */
export function Bulk({ ids, onClear }: Props) {
  const [stopping, stop] = useDisclosure(false);
  const [ranking, rank] = useDisclosure(false);
  const canChange = useCanChange();
  const mayChange = useMay("jobs:write");
  return (
    <div className={classes.selected} role="toolbar" aria-label={words.selected(ids.size)}>
      <b className="num">{words.selected(ids.size)}</b>
      {mayChange && (
        <>
          <Button variant="default" disabled={!canChange} onClick={stop.open}>
            {words.stop}
          </Button>
          <Button variant="default" disabled={!canChange} onClick={rank.open}>
            {words.priority}
          </Button>
        </>
      )}
      <CompareLink ids={[...ids]} />
      <Button variant="subtle" onClick={onClear}>
        {words.clearSelection}
      </Button>
      {stopping && <StopDialog ids={[...ids].slice(0, MAX_IDS)} onClose={stop.close} />}
      {ranking && <PriorityDialog ids={[...ids].slice(0, MAX_IDS)} onClose={rank.close} />}
    </div>
  );
}

interface DialogProps {
  ids: string[];
  onClose: () => void;
}

function StopDialog({ ids, onClose }: DialogProps) {
  const [now, setNow] = useState(false);
  const change = useChange("post", "/v1/jobs/stop");
  return (
    <BulkDialog
      title={words.stopTitle(ids.length)}
      hint={words.stopHint}
      act={words.stopAct}
      colour="red"
      change={change}
      onAct={() => change.mutate({ body: { ids, now } })}
      onClose={onClose}
    >
      <Checkbox label={words.stopNow} checked={now} onChange={(event) => setNow(event.currentTarget.checked)} />
    </BulkDialog>
  );
}

function PriorityDialog({ ids, onClose }: DialogProps) {
  const [priority, setPriority] = useState(5000);
  const change = useChange("patch", "/v1/jobs");
  return (
    <BulkDialog
      title={words.priorityTitle(ids.length)}
      hint={words.priorityHint}
      act={text.apply}
      change={change}
      onAct={() => change.mutate({ body: { ids, priority } })}
      onClose={onClose}
    >
      <PriorityField value={priority} onChange={setPriority} />
    </BulkDialog>
  );
}

interface FieldProps {
  value: number;
  onChange: (value: number) => void;
  error?: string | null;
}

/** A priority: by a slider, or as a number. */
export function PriorityField({ value, onChange, error }: FieldProps) {
  return (
    <div>
      <NumberInput
        label={words.columns.priority}
        min={1}
        max={MAX_PRIORITY}
        step={100}
        allowDecimal={false}
        value={value}
        error={error}
        onChange={(given) => typeof given === "number" && onChange(given)}
      />
      <Slider
        mt="xs"
        thumbLabel={words.columns.priority}
        min={1}
        max={MAX_PRIORITY}
        label={null}
        value={Math.min(MAX_PRIORITY, Math.max(1, value))}
        onChange={onChange}
      />
    </div>
  );
}

interface BulkDialogProps {
  title: string;
  hint: string;
  act: string;
  colour?: string;
  change: { data: Schemas["BulkOutcomes"] | undefined; error: unknown; isPending: boolean };
  onAct: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** Asks once; then says what became of each. */
function BulkDialog({ title, hint, act, colour, change, onAct, onClose, children }: BulkDialogProps) {
  const canChange = useCanChange();
  const outcomes = change.data;
  return (
    <Dialog opened onClose={onClose} title={title}>
      <Stack gap="md">
        {outcomes === undefined ? (
          <>
            <Text size="sm">{hint}</Text>
            {children}
            {change.error != null && <Problem error={change.error} />}
          </>
        ) : (
          <Outcomes outcomes={outcomes} />
        )}
        <Group justify="flex-end" gap="xs">
          {outcomes === undefined ? (
            <>
              <Button variant="default" onClick={onClose} data-autofocus>
                {text.cancel}
              </Button>
              <Button color={colour} loading={change.isPending} disabled={!canChange} onClick={onAct}>
                {act}
              </Button>
            </>
          ) : (
            <Button variant="default" onClick={onClose} ref={giveFocus}>
              {text.close}
            </Button>
          )}
        </Group>
      </Stack>
    </Dialog>
  );
}

/** What was pressed is gone; without it the keyboard would be out of the dialog. */
function giveFocus(button: HTMLButtonElement | null): void {
  button?.focus();
}

function Outcomes({ outcomes }: { outcomes: Schemas["BulkOutcomes"] }) {
  const refused = outcomes.outcomes.filter((outcome) => !outcome.ok);
  const all = outcomes.outcomes.length;
  return (
    <div role="status">
      <p>{words.done(all - refused.length, all)}</p>
      {refused.length > 0 && (
        <>
          <p>{words.refused(refused.length)}</p>
          <ul className={classes.outcomes}>
            {refused.map((outcome) => (
              <li key={outcome.id}>
                <b>{outcome.id}</b>: {outcome.problem}
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
