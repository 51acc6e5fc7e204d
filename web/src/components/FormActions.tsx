import { Button, Group } from "@mantine/core";
import { useCanChange } from "../app/Connection";
import { text } from "../text";

interface Props {
  verb: string;
  pending: boolean;
  disabled?: boolean;
  onClose: () => void;
}

/** Below a form: do it, or leave it. */
export function FormActions({ verb, pending, disabled = false, onClose }: Props) {
  const canChange = useCanChange();
  return (
    <Group justify="flex-end" gap="xs">
      <Button variant="default" onClick={onClose}>
        {text.cancel}
      </Button>
      <Button type="submit" loading={pending} disabled={disabled || !canChange}>
        {verb}
      </Button>
    </Group>
  );
}
