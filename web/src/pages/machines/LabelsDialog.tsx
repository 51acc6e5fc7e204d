import { Stack, Textarea } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useChange } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { FormActions } from "../../components/FormActions";
import { Problem } from "../../components/Notice";
import { Words } from "../../components/Words";
import { text } from "../../text";
import { linesOf, readLabels, wrongLine } from "./labels";
import type { Machine } from "./map";

const words = text.machines;

/** The labels that people give a machine, all of them at once. */
export function LabelsDialog({ machine, onClose }: { machine: Machine; onClose: () => void }) {
  const [lines, setLines] = useState(linesOf(machine.given_labels));
  const [isTried, setIsTried] = useState(false);
  const change = useChange("put", "/v1/machines/{name}/labels", { onSuccess: onClose });
  const wrong = wrongLine(lines);
  const declared = Object.entries(machine.labels).filter(([name]) => machine.given_labels[name] === undefined);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setIsTried(true);
    if (wrong !== null) return;
    change.mutate({ params: { path: { name: machine.name } }, body: { labels: readLabels(lines) } });
  };
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{words.labelsTitle(machine.name)}</span>}>
      <form onSubmit={submit}>
        <Stack gap="md">
          <div className="wrap">
            <Words of={words.labelsHint} />
          </div>
          {declared.length > 0 && (
            <div className="wrap">{words.declared(declared.map(([name, value]) => `${name}=${value}`).join(", "))}</div>
          )}
          <Textarea
            label={words.labelsField}
            description={words.labelsFieldHint}
            data-autofocus
            autosize
            minRows={3}
            maxRows={12}
            value={lines}
            error={isTried && wrong !== null ? words.labelsWrong(wrong) : null}
            onChange={(event) => setLines(event.currentTarget.value)}
          />
          {change.error !== null && <Problem error={change.error} />}
          <FormActions verb={words.labelsVerb} pending={change.isPending} onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
