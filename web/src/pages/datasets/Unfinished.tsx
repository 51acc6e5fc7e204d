import { Button, Group, Progress, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { Confirm } from "../../components/Confirm";
import { Panel } from "../../components/Panel";
import { bytes, percent } from "../../format/format";
import { text } from "../../text";
import { nameIn } from "./content";
import classes from "./Datasets.module.css";
import type { Sending } from "./sending";
import { forget, useAll, useSent } from "./uploads";

const words = text.datasets;

/** Uploads that are on their way, or were broken off; nothing if there are none. */
export function Unfinished() {
  const sendings = useAll();
  const uploads = useGet("/v1/uploads", {});
  const here = new Set(sendings.map((one) => one.sent().uploadId));
  const others = (uploads.data?.uploads ?? []).filter((upload) => !upload.taken_by && !here.has(upload.id));
  if (sendings.length === 0 && others.length === 0) return null;
  return (
    <Panel title={words.unfinished}>
      {sendings.map((sending) => (
        <Running key={sending.name} sending={sending} />
      ))}
      {others.map((upload) => (
        <BrokenOff key={upload.id} upload={upload} onGone={() => uploads.refetch()} />
      ))}
      {others.length > 0 && (
        <Text size="xs" c="dimmed" mt="sm">
          {words.unfinishedHint}
        </Text>
      )}
    </Panel>
  );
}

function Running({ sending }: { sending: Sending }) {
  const sent = useSent(sending);
  const share = sent.numBytes === 0 ? 1 : sent.numSent / sent.numBytes;
  return (
    <div className={classes.upload}>
      <Link to={`/datasets/-new?name=${encodeURIComponent(sending.name)}`} className="cut">
        {sending.name}
      </Link>
      <span className="num">
        {words.sending[sent.state]} · {words.progress(bytes(sent.numSent), bytes(sent.numBytes), percent(share))}
      </span>
      <Progress className={classes.whole} value={100 * share} aria-label={sending.name} />
    </div>
  );
}

function BrokenOff({ upload, onGone }: { upload: Schemas["Upload"]; onGone: () => void }) {
  const canChange = useCanChange();
  const [asking, setAsking] = useState(false);
  const known = nameIn(upload.fingerprint ?? "");
  const name = known ?? words.upload(upload.id);
  const offset = upload.offset ?? 0;
  const giveUp = useChange("delete", "/v1/uploads/{upload_id}", {
    onSuccess: () => {
      if (known !== null) forget(known);
      onGone();
    },
  });
  return (
    <div className={classes.upload}>
      <div>
        <div className="wrap">
          <strong>{name}</strong> {known === null && <span className="dim">{words.elsewhere}</span>}
        </div>
        <div className="dim">
          {words.progress(bytes(offset), bytes(upload.num_bytes), percent(offset / upload.num_bytes))}
        </div>
      </div>
      <Group gap="xs">
        {known !== null && (
          <Button component={Link} variant="default" to={`/datasets/-new?name=${encodeURIComponent(known)}`}>
            {words.goOn}
          </Button>
        )}
        <Button variant="subtle" color="gray" disabled={!canChange} onClick={() => setAsking(true)}>
          {words.giveUp}
        </Button>
      </Group>
      <Confirm
        opened={asking}
        onClose={() => setAsking(false)}
        title={words.giveUpTitle(name)}
        action={words.giveUp}
        pending={giveUp.isPending}
        error={giveUp.error}
        onConfirm={() => giveUp.mutate({ params: { path: { upload_id: upload.id } } })}
      >
        {words.giveUpText(bytes(offset))}
      </Confirm>
    </div>
  );
}
