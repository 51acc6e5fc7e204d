import { Alert, Button, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { useLocation, useNavigate, useSearchParams } from "react-router";
import { cache, messageOf } from "../../api/cache";
import { useChange } from "../../api/queries";
import { Centred } from "../../app/Frame";
import { Words } from "../../components/Words";
import { text } from "../../text";
import classes from "./Logon.module.css";
import { inside } from "./target";

const words = text.logon;

/** The one page for who is not logged on: by name and password, or by a link that the command line made. */
export default function Logon() {
  useDocumentTitle(`${words.title} · ${text.product}`);
  const [code] = useState(takeCode);
  return <Centred>{code === null ? <Form /> : <ByLink code={code} />}</Centred>;
}

/** Take the code of a one-time link out of the address before anything else happens, so that no history keeps it. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  if (code !== null)
    window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
  return code;
}

function useEnter(): () => void {
  const navigate = useNavigate();
  const [search] = useSearchParams();
  return () => {
    cache.clear();
    navigate(inside(search.get("to")), { replace: true });
  };
}

function ByLink({ code }: { code: string }) {
  const enter = useEnter();
  const redeem = useChange("post", "/v1/logon/link", { onSuccess: enter });
  const { mutate } = redeem;
  useEffect(() => mutate({ body: { code } }), [mutate, code]);
  if (redeem.error === null) return <Text role="status">{words.redeeming}</Text>;
  return <Form message={redeem.error.status === 401 ? <Words of={words.badLink} /> : messageOf(redeem.error)} />;
}

function Form({ message }: { message?: ReactNode }) {
  const enter = useEnter();
  const { state } = useLocation();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [wait, setWait] = useState(0);
  const logOn = useChange("post", "/v1/logon", {
    onSuccess: enter,
    onError: (error) => {
      if (error.retryAfter !== null) setWait(error.retryAfter);
    },
  });
  useEffect(() => {
    if (wait <= 0) return;
    const timer = window.setTimeout(() => setWait(wait - 1), 1000);
    return () => window.clearTimeout(timer);
  }, [wait]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    logOn.mutate({ body: { name: name.trim(), password, cookie: true } });
  };
  const shown = wait > 0 ? words.wait(wait) : logOn.error !== null ? messageOf(logOn.error) : (message ?? null);
  return (
    <form onSubmit={submit} className={classes.card}>
      <Stack gap="md">
        <div className={classes.product}>{text.product}</div>
        <Title order={1}>{words.title}</Title>
        {shown !== null ? (
          <Alert color="red" variant="outline" role="alert">
            {shown}
          </Alert>
        ) : (
          state?.ended && <Text c="dimmed">{words.ended}</Text>
        )}
        <TextInput
          label={words.name}
          name="username"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          required
          autoFocus
          size="sm"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <PasswordInput
          label={words.password}
          name="password"
          autoComplete="current-password"
          required
          size="sm"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <Button type="submit" size="sm" loading={logOn.isPending} disabled={wait > 0}>
          {words.submit}
        </Button>
        <Text c="dimmed" size="xs">
          <Words of={words.link} />
        </Text>
      </Stack>
    </form>
  );
}
