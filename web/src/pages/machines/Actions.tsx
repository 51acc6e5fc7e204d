import { Button } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Problem } from "../../components/Notice";
import { Words } from "../../components/Words";
import { text } from "../../text";
import { ExcludeDialog } from "./ExcludeDialog";
import { LabelsDialog } from "./LabelsDialog";
import classes from "./Machines.module.css";
import type { Machine } from "./map";

const words = text.machines;

/** What those do to a machine who run the pool. */
export function Actions({ machine, removable }: { machine: Machine; removable: boolean }) {
  const mayWrite = useMay("pool:write");
  const canChange = useCanChange();
  const [asks, setAsks] = useState<"drain" | "exclude" | "labels" | "remove" | null>(null);
  const change = useChange("patch", "/v1/machines/{name}", { onSuccess: () => setAsks(null) });
  const remove = useChange("delete", "/v1/machines/{name}", { onSuccess: () => setAsks(null) });
  const set = (drained: boolean) => change.mutate({ params: { path: { name: machine.name } }, body: { drained } });
  if (!mayWrite) return null;
  return (
    <div className={classes.actions}>
      <Button variant="default" onClick={() => setAsks("labels")}>
        {words.labels}
      </Button>
      {removable && (machine.state === "away" || machine.state === "drained") && (
        <Button variant="default" onClick={() => setAsks("remove")}>
          {words.remove}
        </Button>
      )}
      {machine.excluded === null && (
        <Button variant="default" onClick={() => setAsks("exclude")}>
          {words.exclude}
        </Button>
      )}
      {machine.drained_by === null ? (
        <Button variant="default" onClick={() => setAsks("drain")}>
          {words.drain}
        </Button>
      ) : (
        <Button loading={change.isPending} disabled={!canChange} onClick={() => set(false)}>
          {words.return}
        </Button>
      )}
      {change.error !== null && asks === null && <Problem error={change.error} />}
      <Confirm
        opened={asks === "drain"}
        onClose={() => setAsks(null)}
        title={words.drainTitle(machine.name)}
        action={words.drainVerb}
        pending={change.isPending}
        error={change.error}
        onConfirm={() => set(true)}
      >
        <Words of={words.drainHint} />
      </Confirm>
      <Confirm
        opened={asks === "remove"}
        onClose={() => setAsks(null)}
        title={words.removeTitle(machine.name)}
        action={words.removeVerb}
        pending={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({ params: { path: { name: machine.name } } })}
      >
        {words.removeHint}
      </Confirm>
      {asks === "labels" && <LabelsDialog machine={machine} onClose={() => setAsks(null)} />}
      {asks === "exclude" && <ExcludeDialog machine={machine} onClose={() => setAsks(null)} />}
    </div>
  );
}

/** Brings slots back, or a whole machine. */
export function IncludeButton({ machine, slots }: { machine: Machine; slots: readonly number[] }) {
  const mayWrite = useMay("pool:write");
  const canChange = useCanChange();
  const change = useChange("post", "/v1/machines/{name}/include");
  if (!mayWrite) return null;
  return (
    <>
      <Button
        variant="default"
        size="compact-xs"
        loading={change.isPending}
        disabled={!canChange}
        aria-label={words.includeWhat(words.what(slots), machine.name)}
        onClick={() =>
          change.mutate({
            params: { path: { name: machine.name } },
            body: { slots: slots.length === 0 ? null : [...slots] },
          })
        }
      >
        {words.include}
      </Button>
      {change.error !== null && <Problem error={change.error} />}
    </>
  );
}
