import { Chip, Group, Input, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useChange } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { FormActions } from "../../components/FormActions";
import { Problem } from "../../components/Notice";
import { Words } from "../../components/Words";
import { text } from "../../text";
import classes from "./Machines.module.css";
import type { Machine } from "./map";

const words = text.machines;
const MAX_BECAUSE = 200;

interface Props {
  machine: Machine;
  /** The slot that is chosen at first. */
  slot?: number;
  onClose: () => void;
}

/** Which slots of a machine are not to be used any more, and why. */
export function ExcludeDialog({ machine, slot, onClose }: Props) {
  const [isWhole, setIsWhole] = useState(machine.slots.length === 0);
  const [chosen, setChosen] = useState<string[]>(slot === undefined ? [] : [String(slot)]);
  const [because, setBecause] = useState("");
  const change = useChange("post", "/v1/machines/{name}/exclude", { onSuccess: onClose });
  const isReady = because.trim() !== "" && (isWhole || chosen.length > 0);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) return;
    change.mutate({
      params: { path: { name: machine.name } },
      body: { slots: isWhole ? null : chosen.map(Number), because: because.trim() },
    });
  };
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{words.excludeTitle(machine.name)}</span>}>
      <form onSubmit={submit}>
        <Stack gap="md">
          <div className="wrap">
            <Words of={words.excludeHint} />
          </div>
          {machine.slots.length > 0 && (
            <SegmentedControl
              fullWidth
              aria-label={words.which}
              data={[
                { value: "some", label: words.some },
                { value: "whole", label: words.whole },
              ]}
              value={isWhole ? "whole" : "some"}
              onChange={(value) => setIsWhole(value === "whole")}
            />
          )}
          {!isWhole && (
            <Input.Wrapper label={words.which} labelElement="div">
              <Chip.Group multiple value={chosen} onChange={setChosen}>
                <Group className={classes.chips} role="group" aria-label={words.which}>
                  {machine.slots.map(({ slot: number }) => (
                    <Chip key={number} value={String(number)} size="sm" radius="sm">
                      {number}
                    </Chip>
                  ))}
                </Group>
              </Chip.Group>
            </Input.Wrapper>
          )}
          <TextInput
            label={words.because}
            description={words.becauseHint}
            required
            data-autofocus
            maxLength={MAX_BECAUSE}
            value={because}
            onChange={(event) => setBecause(event.currentTarget.value)}
          />
          {change.error !== null && <Problem error={change.error} />}
          <FormActions verb={words.excludeVerb} pending={change.isPending} disabled={!isReady} onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
