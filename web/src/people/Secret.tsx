import { Alert, Button, Code, Group, Stack } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Dialog } from "../components/Dialog";
import { text } from "../text";

const words = text.people.secret;

interface Props {
  title: string;
  value: string | null;
  onClose: () => void;
  /** What to do with it. */
  children?: ReactNode;
}

/** Shows a secret once; only its own button closes it, so that it is not lost by a click beside it. */
export function Secret({ title, value, onClose, children }: Props) {
  const clipboard = useClipboard({ timeout: 2000 });
  return (
    <Dialog
      opened={value !== null}
      onClose={onClose}
      title={<span className="wrap">{title}</span>}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack gap="md">
        <Alert color="yellow" variant="outline">
          {words.once}
        </Alert>
        {children}
        <Code block className="wrap" style={{ whiteSpace: "pre-wrap" }}>
          {value}
        </Code>
        <Group justify="flex-end" gap="xs">
          <Button
            data-autofocus
            leftSection={clipboard.copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
            onClick={() => clipboard.copy(value ?? "")}
          >
            {clipboard.copied ? text.copied : words.copy}
          </Button>
          <Button variant="default" onClick={onClose}>
            {words.done}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
