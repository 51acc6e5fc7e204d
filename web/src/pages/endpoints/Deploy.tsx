import { Button, Group, NumberInput, Progress, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";
import type { Schemas } from "../../api/client";
import { type Refused, Unreachable } from "../../api/problem";
import { useChange, useGet } from "../../api/queries";
import { send } from "../../api/send";
import { useCanChange } from "../../app/Connection";
import { Dialog } from "../../components/Dialog";
import { DropFiles } from "../../components/DropFiles";
import { JobField } from "../../components/JobField";
import { Problem } from "../../components/Notice";
import { QueueField } from "../../components/QueueField";
import { Snippet } from "../../components/Snippet";
import { useAddress } from "../../components/useAddress";
import type { Chosen } from "../../files/chosen";
import { tarGzOf } from "../../files/tar";
import { percent } from "../../format/format";
import { text } from "../../text";
import { endpointsChanged } from "./changed";
import { deployCommand, deploymentOf, type Wish } from "./deployment";
import classes from "./Endpoints.module.css";
import type { EndpointView } from "./shown";

const words = text.endpoints.deploy;

interface Props {
  /** The endpoint that gets a version; left out: a new one. */
  endpoint?: EndpointView;
  onClose: () => void;
}

/** Deploys what a job has trained, or a folder: a new endpoint, or a version of one. */
export function Deploy({ endpoint, onClose }: Props) {
  const address = useAddress();
  const from = address.get("deploy") === "folder" ? "folder" : "job";
  const [wish, setWish] = useState<Wish>({
    name: endpoint?.name ?? "",
    job: address.get("job") ?? "",
    file: "",
    min: endpoint ? null : 0,
    max: endpoint ? null : 4,
    slots: null,
    queue: null,
    traffic: 100,
  });
  const set = (change: Partial<Wish>) => setWish((before) => ({ ...before, ...change }));
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const canChange = useCanChange();
  const deployment = useDeployment(onClose);
  const others = useGet("/v1/endpoints", { params: { query: { limit: 1000 } } }, { enabled: endpoint === undefined });
  const isTaken = endpoint === undefined && others.data?.endpoints.some((one) => one.name === wish.name);
  const isReady = wish.name !== "" && (from === "job" ? wish.job !== "" : chosen !== null && chosen.files.length > 0);
  const source = from === "job" ? wish.job : (chosen?.name ?? "");
  const { error } = deployment;
  return (
    <Dialog
      opened
      onClose={onClose}
      size="lg"
      title={<span className="wrap">{endpoint ? words.titleVersion(endpoint.name) : words.title}</span>}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) deployment.start(wish, from === "job" ? null : chosen);
        }}
      >
        <Stack gap="md">
          <SegmentedControl
            aria-label={words.from}
            value={from}
            onChange={(value) => address.set({ deploy: value })}
            data={[
              { value: "job", label: words.job },
              { value: "folder", label: words.folder },
            ]}
          />
          {from === "job" ? (
            <JobField
              label={words.jobLabel}
              description={words.jobHint}
              value={wish.job}
              onChange={(job) => set({ job })}
              states={["completed"]}
              nothing={words.noJobs}
              error={error?.of("job") ?? null}
            />
          ) : (
            <>
              <DropFiles
                label={words.folderLabel}
                hint={words.folderHint}
                ignoring
                chosen={chosen}
                onChoose={setChosen}
                error={error?.of("code")}
              />
              <TextInput
                label={words.file}
                description={words.fileHint}
                value={wish.file}
                onChange={(event) => set({ file: event.currentTarget.value })}
                error={error?.of("file")}
              />
            </>
          )}
          {endpoint === undefined && (
            <TextInput
              label={words.name}
              description={isTaken ? words.take(wish.name) : words.nameHint}
              required
              value={wish.name}
              onChange={(event) => set({ name: event.currentTarget.value.trim() })}
              error={error?.of("name")}
            />
          )}
          <Numbers wish={wish} set={set} isVersion={endpoint !== undefined || isTaken === true} error={error} />
          {endpoint === undefined && (
            <QueueField
              label={words.queue}
              value={wish.queue ?? "default"}
              onChange={(queue) => set({ queue })}
              error={error?.of("queue") ?? null}
            />
          )}
          {deployment.sent !== null && (
            <div>
              <Progress value={100 * deployment.sent} aria-label={words.sending(percent(deployment.sent))} />
              <Text size="xs" c="dimmed" role="status">
                {words.sending(percent(deployment.sent))}
              </Text>
            </div>
          )}
          {error && <Problem error={error} />}
          <div>
            <Text size="xs" c="dimmed" mb={4}>
              {words.cli}
            </Text>
            <Snippet code={deployCommand(source || "job-3", wish)} label={words.cli} />
          </div>
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {text.cancel}
            </Button>
            <Button type="submit" loading={deployment.isPending} disabled={!canChange || !isReady}>
              {words.deploy}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

function useDeployment(onClose: () => void) {
  const navigate = useNavigate();
  const [sent, setSent] = useState<number | null>(null);
  const [error, setError] = useState<Refused | null>(null);
  const made = (name: string) => {
    endpointsChanged();
    onClose();
    navigate(`/endpoints/${name}/versions`);
  };
  const byJob = useChange("post", "/v1/endpoints/{name}/versions", {
    onSuccess: (view) => made(view.name),
    onError: setError,
  });
  const start = (wish: Wish, chosen: Chosen | null) => {
    setError(null);
    const params = { path: { name: wish.name } };
    if (chosen === null) {
      byJob.mutate({ params, body: deploymentOf(wish, null) as never });
      return;
    }
    void sendFolder(wish, chosen, setSent)
      .then((view) => made(view.name))
      .catch((problem: unknown) => setError(problem instanceof Error ? (problem as Refused) : new Unreachable()))
      .finally(() => setSent(null));
  };
  return { start, sent, error, isPending: byJob.isPending || sent !== null };
}

async function sendFolder(
  wish: Wish,
  chosen: Chosen,
  onSent: (share: number) => void,
): Promise<Schemas["EndpointView"]> {
  onSent(0);
  const form = new FormData();
  form.append("version", JSON.stringify(deploymentOf(wish, chosen.name)));
  form.append("code", await tarGzOf(chosen.files), "model.tar.gz");
  return send<Schemas["EndpointView"]>({
    method: "POST",
    path: `/v1/endpoints/${encodeURIComponent(wish.name)}/versions`,
    body: form,
    onProgress: (done, total) => onSent(total > 0 ? done / total : 0),
  });
}

interface NumbersProps {
  wish: Wish;
  set: (change: Partial<Wish>) => void;
  isVersion: boolean;
  error: Refused | null;
}

function Numbers({ wish, set, isVersion, error }: NumbersProps) {
  const number = (value: string | number) => (typeof value === "number" ? value : null);
  return (
    <div className={classes.pictureFields}>
      {isVersion ? (
        <NumberInput
          label={words.traffic}
          description={words.trafficHint}
          min={1}
          max={100}
          suffix=" %"
          value={wish.traffic ?? ""}
          onChange={(value) => set({ traffic: number(value) })}
          error={error?.of("traffic")}
        />
      ) : (
        <>
          <NumberInput
            label={words.min}
            min={0}
            max={4096}
            allowDecimal={false}
            value={wish.min ?? ""}
            onChange={(value) => set({ min: number(value) })}
            error={error?.of("kernel_min")}
          />
          <NumberInput
            label={words.max}
            min={1}
            max={4096}
            allowDecimal={false}
            value={wish.max ?? ""}
            onChange={(value) => set({ max: number(value) })}
            error={error?.of("kernel_max")}
          />
        </>
      )}
      <NumberInput
        label={words.slots}
        description={words.slotsHint}
        min={0.01}
        max={64}
        placeholder="1"
        value={wish.slots ?? ""}
        onChange={(value) => set({ slots: number(value) })}
        error={error?.of("slots_per_task")}
      />
    </div>
  );
}
