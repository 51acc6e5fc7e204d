import { Alert, Button, Group, Stack } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { refetch } from "../../api/cache";
import type { Schemas } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useRevised } from "../../api/useRevised";
import { useCanChange } from "../../app/Connection";
import { useMe } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Crumbs } from "../../components/Crumbs";
import { Facts } from "../../components/Facts";
import { Answer, Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Sides } from "../../components/Sides";
import { Time } from "../../components/Time";
import { SessionsPanel } from "../../people/SessionsPanel";
import { TokensPanel } from "../../people/TokensPanel";
import { text } from "../../text";
import { changingOf, removingOf } from "./changing";
import { NewPassword } from "./NewPassword";
import { Active, RoleSelect } from "./People";

type User = Schemas["UserView"];
const words = text.people;

/** Somebody's account: role, whether it is open, tokens, sessions. */
export default function Person() {
  const { name = "" } = useParams();
  const own = useMe().name === name;
  const user = useGet("/v1/users/{name}", { params: { path: { name } } }, { fresh: true });
  return (
    <Page
      title={name}
      heading={
        <Crumbs above={[{ to: "/people", title: text.nav.people }]} name={name}>
          {user.data && <Active user={user.data} />}
        </Crumbs>
      }
      actions={user.data && !own && <Actions user={user.data} />}
    >
      <Answer query={user}>
        {(shown) => (
          <Sides
            left={<Account user={shown} own={own} />}
            right={
              <>
                <TokensPanel owner={shown.name} />
                <SessionsPanel owner={shown.name} />
              </>
            }
          />
        )}
      </Answer>
    </Page>
  );
}

function Account({ user, own }: { user: User; own: boolean }) {
  return (
    <Panel title={words.account}>
      <Stack gap="md">
        <Facts
          facts={[
            { label: words.columns.created, value: <Time at={user.created_at} /> },
            { label: words.columns.password, value: <Time at={user.password_changed_at} /> },
          ]}
        />
        {own ? (
          <div>
            {words.yourself} <Link to="/me">{words.yours}</Link>
          </div>
        ) : (
          <Role user={user} />
        )}
      </Stack>
    </Panel>
  );
}

const again = (name: string) =>
  refetch(
    (path, parameters) => path === "/v1/users" || (path.startsWith("/v1/users/") && parameters.path?.name === name),
  );

function Role({ user }: { user: User }) {
  const canChange = useCanChange();
  const [wanted, setWanted] = useState<Schemas["Role"] | null>(null);
  const change = useRevised({
    ...changingOf(user.name),
    onSuccess: () => setWanted(null),
    onSettled: () => again(user.name),
  });
  const role = wanted ?? user.role;
  const say = (one: string) => words.roles[one] ?? one;
  return (
    <Stack gap="sm">
      <RoleSelect
        role={role}
        onChange={(next) => {
          change.reset();
          setWanted(next);
        }}
        error={change.error?.of("role")}
        disabled={!canChange}
      />
      {change.error?.status === 412 ? (
        <Alert color="yellow" variant="outline" role="alert">
          {words.stale(say(user.role), say(role))}
        </Alert>
      ) : (
        change.error !== null && change.error.problems.length === 0 && <Problem error={change.error} />
      )}
      {(role !== user.role || change.isPending) && (
        <Group gap="xs">
          <Button
            loading={change.isPending}
            disabled={!canChange}
            onClick={() => change.mutate({ shown: user, body: { role } })}
          >
            {words.apply}
          </Button>
          <Button variant="default" onClick={() => setWanted(null)}>
            {text.cancel}
          </Button>
        </Group>
      )}
    </Stack>
  );
}

function Actions({ user }: { user: User }) {
  const navigate = useNavigate();
  const canChange = useCanChange();
  const [asked, setAsked] = useState<"disable" | "remove" | "password" | null>(null);
  const close = () => setAsked(null);
  const change = useChange("patch", "/v1/users/{name}", { onSuccess: close, onSettled: () => again(user.name) });
  const remove = useRevised({
    ...removingOf(user.name),
    onSuccess: () => {
      refetch((path) => path === "/v1/users");
      navigate("/people");
    },
  });
  const active = (to: boolean) => change.mutate({ params: { path: { name: user.name } }, body: { active: to } });
  const ask = (what: typeof asked) => {
    change.reset();
    remove.reset();
    setAsked(what);
  };
  return (
    <>
      {change.error !== null && asked === null && <Problem error={change.error} />}
      <Button variant="default" disabled={!canChange} onClick={() => ask("remove")}>
        {words.remove}…
      </Button>
      {user.active ? (
        <Button variant="default" disabled={!canChange} onClick={() => ask("disable")}>
          {words.disable}…
        </Button>
      ) : (
        <Button variant="default" disabled={!canChange} loading={change.isPending} onClick={() => active(true)}>
          {words.enable}
        </Button>
      )}
      <Button variant="default" disabled={!canChange} onClick={() => ask("password")}>
        {words.passwordAction}
      </Button>
      <NewPassword user={user} opened={asked === "password"} onClose={close} />
      <Confirm
        opened={asked === "disable"}
        onClose={close}
        title={words.disableAsk(user.name)}
        action={words.disable}
        pending={change.isPending}
        error={change.error}
        onConfirm={() => active(false)}
      >
        {words.disableWhat}
      </Confirm>
      <Confirm
        opened={asked === "remove"}
        onClose={close}
        title={words.removeAsk(user.name)}
        action={words.remove}
        pending={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate({ shown: user, body: undefined })}
      >
        {words.removeWhat}
      </Confirm>
    </>
  );
}
