import { Button, PasswordInput, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type FormEvent, useState } from "react";
import { refetch } from "../../api/cache";
import { useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMe } from "../../app/session";
import { Problem } from "../../components/Notice";
import { text } from "../../text";

const words = text.me.password;
const SHORTEST = 10;

/** Changes one's own password; the present one is asked for. */
export function PasswordForm() {
  const me = useMe();
  const canChange = useCanChange();
  const [old, setOld] = useState("");
  const [next, setNext] = useState("");
  const [again, setAgain] = useState("");
  const [sent, setSent] = useState(false);
  const change = useChange("put", "/v1/me/password", {
    onSuccess: () => {
      setOld("");
      setNext("");
      setAgain("");
      setSent(false);
      notifications.show({ message: words.done, color: "green" });
      refetch((path) => path === "/v1/me/sessions");
    },
  });
  const short = sent && next.length < SHORTEST ? words.short : null;
  const differ = sent && next !== again ? words.differ : null;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setSent(true);
    if (next.length >= SHORTEST && next === again) change.mutate({ body: { old_password: old, new_password: next } });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <input type="text" name="username" autoComplete="username" value={me.name} readOnly hidden />
        <PasswordInput
          label={words.old}
          autoComplete="current-password"
          required
          value={old}
          error={change.error?.of("old_password")}
          onChange={(event) => setOld(event.currentTarget.value)}
        />
        <PasswordInput
          label={words.new}
          description={words.newHint}
          autoComplete="new-password"
          required
          value={next}
          error={short ?? change.error?.of("new_password")}
          onChange={(event) => setNext(event.currentTarget.value)}
        />
        <PasswordInput
          label={words.again}
          autoComplete="new-password"
          required
          value={again}
          error={differ}
          onChange={(event) => setAgain(event.currentTarget.value)}
        />
        {change.error !== null && change.error.problems.length === 0 && <Problem error={change.error} />}
        <div>
          <Button type="submit" variant="default" loading={change.isPending} disabled={!canChange}>
            {words.submit}
          </Button>
        </div>
      </Stack>
    </form>
  );
}
