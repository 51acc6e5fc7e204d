import { Button, Group, PasswordInput, Stack } from "@mantine/core";
import { useMemo, useState } from "react";
import { refetch } from "../../api/cache";
import type { Schemas } from "../../api/client";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { Dialog } from "../../components/Dialog";
import { Problem } from "../../components/Notice";
import { Secret } from "../../people/Secret";
import { text } from "../../text";
import { madeUp } from "./password";

const words = text.people;

/** Gives somebody a new password: one that was typed, or one that is made up here and shown once. */
export function NewPassword({
  user,
  opened,
  onClose,
}: {
  user: Schemas["UserView"];
  opened: boolean;
  onClose: () => void;
}) {
  const canChange = useCanChange();
  const [typed, setTyped] = useState("");
  const [shown, setShown] = useState<string | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another one each time that it is asked for
  const made = useMemo(() => madeUp(crypto.getRandomValues(new Uint16Array(5))), [opened]);
  const change = useChange("patch", "/v1/users/{name}", {
    onSuccess: () => {
      if (typed === "") setShown(made);
      setTyped("");
      onClose();
    },
    onSettled: () => refetch((path) => path.startsWith("/v1/users")),
  });
  return (
    <>
      <Dialog opened={opened} onClose={onClose} title={<span className="wrap">{words.resetAsk(user.name)}</span>}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            change.mutate({ params: { path: { name: user.name } }, body: { password: typed === "" ? made : typed } });
          }}
        >
          <Stack gap="md">
            <div>{words.resetWhat}</div>
            <PasswordInput
              label={words.form.password}
              description={words.form.passwordHint}
              autoComplete="new-password"
              data-autofocus
              value={typed}
              error={change.error?.of("password")}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
            {change.error !== null && change.error.problems.length === 0 && <Problem error={change.error} />}
            <Group justify="flex-end" gap="xs">
              <Button variant="default" onClick={onClose}>
                {text.cancel}
              </Button>
              <Button type="submit" loading={change.isPending} disabled={!canChange}>
                {words.reset}
              </Button>
            </Group>
          </Stack>
        </form>
      </Dialog>
      <Secret title={words.secret.password(user.name)} value={shown} onClose={() => setShown(null)} />
    </>
  );
}
