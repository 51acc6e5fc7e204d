import { Button, Checkbox, Group, NumberInput, Stack, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlayerStop, IconRefresh, IconRocket, IconTrash, IconUsers } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { Link, useNavigate } from "react-router";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay, useOwns } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Dialog } from "../../components/Dialog";
import { Problem } from "../../components/Notice";
import { text } from "../../text";
import { isOver, type Job, kindOf } from "./facts";
import { ShareJob } from "./ShareJob";

const words = text.job;

/** What can be done with a job: only what one may do, and what makes sense now. */
export function Actions({ job }: { job: Job }) {
  const mayWrite = useMay("jobs:write");
  const mayDeploy = useMay("endpoints:write");
  const owns = useOwns(job.owner);
  const canChange = useCanChange();
  const [deploying, deploy] = useDisclosure(false);
  const [sharing, share] = useDisclosure(false);
  const [stopping, stop] = useDisclosure(false);
  const [removing, remove] = useDisclosure(false);
  const over = isOver(job);
  const kind = kindOf(job);
  const trains = kind === "training" || kind === "trial" || kind === "fixed";
  return (
    <>
      {mayWrite && trains && (
        <Button
          component={Link}
          to={`/submit?from=${job.id}`}
          variant="default"
          leftSection={<IconRefresh size={16} />}
        >
          {words.actions.again}
        </Button>
      )}
      {mayDeploy && trains && job.state === "completed" && (
        <Button variant="default" leftSection={<IconRocket size={16} />} disabled={!canChange} onClick={deploy.open}>
          {words.actions.deploy}
        </Button>
      )}
      {mayWrite && owns && (
        <Button variant="default" leftSection={<IconUsers size={16} />} disabled={!canChange} onClick={share.open}>
          {words.actions.share}
        </Button>
      )}
      {mayWrite && owns && !over && job.state !== "stopping" && (
        <Button variant="default" leftSection={<IconPlayerStop size={16} />} disabled={!canChange} onClick={stop.open}>
          {words.actions.stop}
        </Button>
      )}
      {mayWrite && owns && over && (
        <Button variant="default" leftSection={<IconTrash size={16} />} disabled={!canChange} onClick={remove.open}>
          {words.actions.remove}
        </Button>
      )}
      {deploying && <DeployDialog job={job} onClose={deploy.close} />}
      {sharing && <ShareJob job={job} onClose={share.close} />}
      {stopping && <StopDialog job={job} onClose={stop.close} />}
      {removing && <DeleteDialog job={job} onClose={remove.close} />}
    </>
  );
}

interface Props {
  job: Job;
  onClose: () => void;
}

function StopDialog({ job, onClose }: Props) {
  const [now, setNow] = useState(false);
  const change = useChange("post", "/v1/jobs/{job_id}/stop", { onSuccess: onClose });
  return (
    <Confirm
      opened
      onClose={onClose}
      title={words.stopTitle(`${job.id} ${job.spec.name}`)}
      action={words.stopAct}
      pending={change.isPending}
      error={change.error}
      onConfirm={() => change.mutate({ params: { path: { job_id: job.id }, query: { now } } })}
    >
      <Stack gap="sm">
        <span>{words.stopHint}</span>
        <Checkbox label={words.stopNow} checked={now} onChange={(event) => setNow(event.currentTarget.checked)} />
      </Stack>
    </Confirm>
  );
}

function DeleteDialog({ job, onClose }: Props) {
  const navigate = useNavigate();
  const change = useChange("delete", "/v1/jobs/{job_id}", { onSuccess: () => navigate("/jobs") });
  return (
    <Confirm
      opened
      onClose={onClose}
      title={words.removeTitle(`${job.id} ${job.spec.name}`)}
      action={words.removeAct}
      pending={change.isPending}
      error={change.error}
      onConfirm={() => change.mutate({ params: { path: { job_id: job.id } } })}
    >
      {words.removeHint}
    </Confirm>
  );
}

/** A name that an endpoint may have, made of a job's. */
export function endpointName(name: string): string {
  return name
    .toLowerCase()
    .replace(/\.[a-z0-9]+$/, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40);
}

/** Makes an endpoint, or a new version of one, of what the job has trained. */
function DeployDialog({ job, onClose }: Props) {
  const navigate = useNavigate();
  const canChange = useCanChange();
  const [name, setName] = useState(endpointName(job.spec.name));
  const [least, setLeast] = useState<number | "">("");
  const [most, setMost] = useState<number | "">("");
  const change = useChange("post", "/v1/endpoints/{name}/versions", {
    onSuccess: () => navigate(`/endpoints/${encodeURIComponent(name)}`),
  });
  const deploy = (event: FormEvent) => {
    event.preventDefault();
    change.mutate({
      params: { path: { name } },
      body: { job: job.id, kernel_min: least === "" ? null : least, kernel_max: most === "" ? null : most },
    });
  };
  const error = (field: string) => change.error?.of(field) ?? undefined;
  const isNamed = ["name", "kernel_min", "kernel_max"].some((field) => error(field) !== undefined);
  const number = (set: (value: number | "") => void) => (value: number | string) =>
    set(typeof value === "number" ? value : "");
  return (
    <Dialog opened onClose={onClose} title={<span className="wrap">{words.deploy.title(job.id)}</span>}>
      <form onSubmit={deploy}>
        <Stack gap="md">
          <TextInput
            label={words.deploy.name}
            description={words.deploy.nameHint}
            required
            maxLength={60}
            value={name}
            error={error("name")}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
          />
          <NumberInput
            label={words.deploy.min}
            description={words.deploy.minHint}
            min={0}
            allowDecimal={false}
            value={least}
            error={error("kernel_min")}
            onChange={number(setLeast)}
          />
          <NumberInput
            label={words.deploy.max}
            min={1}
            allowDecimal={false}
            value={most}
            error={error("kernel_max")}
            onChange={number(setMost)}
          />
          {change.error !== null && !isNamed && <Problem error={change.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {text.cancel}
            </Button>
            <Button type="submit" loading={change.isPending} disabled={!canChange || name === ""}>
              {words.deploy.act}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
