import { Button, Group, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { useCanChange } from "../app/Connection";
import { text } from "../text";
import { Dialog } from "./Dialog";
import { Problem } from "./Notice";

interface Props {
  opened: boolean;
  onClose: () => void;
  /** The question; it names the thing. */
  title: string;
  /** What comes of it. */
  children: ReactNode;
  /** The verb on the button. */
  action: string;
  onConfirm: () => void;
  pending?: boolean;
  error?: unknown;
}

/** Asks once before something is lost. */
export function Confirm({ opened, onClose, title, children, action, onConfirm, pending = false, error }: Props) {
  const canChange = useCanChange();
  return (
    <Dialog opened={opened} onClose={onClose} title={<span className="wrap">{title}</span>}>
      <Stack gap="md">
        <div className="wrap">{children}</div>
        {error != null && <Problem error={error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose} data-autofocus>
            {text.cancel}
          </Button>
          <Button color="red" loading={pending} disabled={!canChange} onClick={onConfirm}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
