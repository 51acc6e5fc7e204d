import { Button, Group, Progress, Stack, Text } from "@mantine/core";
import { Panel } from "../../components/Panel";
import { bytes, percent } from "../../format/format";
import { text } from "../../text";
import type { Sending } from "./sending";
import { useSent } from "./uploads";

const words = text.datasets;

interface Props {
  sending: Sending;
  onGoOn: () => void;
  /** Whether its files are at hand. */
  canGoOn: boolean;
}

/** How far an upload is, and a way to pause it. */
export function Progressing({ sending, onGoOn, canGoOn }: Props) {
  const sent = useSent(sending);
  const share = sent.numBytes === 0 ? 1 : sent.numSent / sent.numBytes;
  const runs = sent.state === "sending" || sent.state === "waiting";
  return (
    <Panel title={words.sending[sent.state]}>
      <Stack gap="xs">
        <Progress value={100 * share} aria-label={words.sending[sent.state]} />
        <Group justify="space-between">
          <Text size="sm" className="num" role="status">
            {words.progress(bytes(sent.numSent), bytes(sent.numBytes), percent(share))}
          </Text>
          {runs && (
            <Button variant="default" onClick={() => sending.pause()}>
              {words.pause}
            </Button>
          )}
          {(sent.state === "paused" || sent.state === "failed") && canGoOn && (
            <Button variant="default" onClick={onGoOn}>
              {words.resume}
            </Button>
          )}
        </Group>
        {sent.resumedAt > 0 && <Text size="sm">{words.resumed(bytes(sent.resumedAt))}</Text>}
        {sent.error !== null && (
          <Text size="sm" c="red" role="alert" className="wrap">
            {sent.error}
          </Text>
        )}
        <Text size="xs" c="dimmed">
          {words.leave}
        </Text>
      </Stack>
    </Panel>
  );
}
