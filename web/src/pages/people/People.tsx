import { Button, Group, PasswordInput, Select, Stack, TextInput } from "@mantine/core";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useCallback, useState } from "react";
import { useNavigate } from "react-router";
import { refetch } from "../../api/cache";
import { call, type Schemas } from "../../api/client";
import { keyOf, useChange } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { type Column, DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Answer, Empty, Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { State } from "../../components/State";
import { Time } from "../../components/Time";
import { useAddress } from "../../components/useAddress";
import { Secret } from "../../people/Secret";
import { text } from "../../text";

type User = Schemas["UserView"];
const words = text.people;
const NOBODY: readonly User[] = [];

const COLUMNS: readonly Column<User>[] = [
  { id: "name", header: words.columns.name, meta: { grow: true }, cell: ({ row }) => row.original.name },
  {
    id: "role",
    header: words.columns.role,
    size: 140,
    cell: ({ row }) => words.roles[row.original.role] ?? row.original.role,
  },
  { id: "state", header: words.columns.state, size: 130, cell: ({ row }) => <Active user={row.original} /> },
  { id: "created", header: words.columns.created, size: 150, cell: ({ row }) => <Time at={row.original.created_at} /> },
  {
    id: "password",
    header: words.columns.password,
    size: 160,
    cell: ({ row }) => <Time at={row.original.password_changed_at} />,
  },
];

/** Whether an account is open. */
export function Active({ user }: { user: User }) {
  return user.active ? (
    <State state="completed" word={words.active} />
  ) : (
    <State state="stopped" word={words.disabled} />
  );
}

/** Who has an account here. */
export default function People() {
  const address = useAddress();
  const canChange = useCanChange();
  const find = address.get("q") ?? "";
  const users = useUsers();
  const [adding, setAdding] = useState(false);
  return (
    <Page
      title={text.nav.people}
      actions={
        <Button leftSection={<IconPlus size={16} />} disabled={!canChange} onClick={() => setAdding(true)}>
          {words.add}
        </Button>
      }
    >
      <TextInput
        type="search"
        aria-label={words.find}
        placeholder={words.find}
        leftSection={<IconSearch size={16} />}
        maw={320}
        value={find}
        onChange={(event) => address.set({ q: event.currentTarget.value })}
      />
      <Answer query={users} rows={5}>
        {(all) => (
          <DataTable
            label={words.list}
            columns={COLUMNS}
            rows={find === "" ? all : all.filter((user) => user.name.includes(find.trim().toLowerCase()))}
            rowId={(user) => user.name}
            href={(user) => `/people/${encodeURIComponent(user.name)}`}
            card={(user) => (
              <Stack gap={4}>
                <b className="cut">{user.name}</b>
                <Group gap="sm">
                  <Active user={user} />
                  <span className="dim">{words.roles[user.role] ?? user.role}</span>
                </Group>
              </Stack>
            )}
            empty={<Empty title={words.none} hint={words.noneHint} />}
          />
        )}
      </Answer>
      <Dialog opened={adding} onClose={() => setAdding(false)} title={words.form.title}>
        {adding && <AddForm onClose={() => setAdding(false)} />}
      </Dialog>
    </Page>
  );
}

/** All users: some thousands at most, asked for in pages of a thousand until there are no more. */
function useUsers() {
  const query = useInfiniteQuery({
    queryKey: keyOf("/v1/users", { params: { query: { limit: 1000 } } }),
    queryFn: ({ pageParam, signal }) =>
      call("get", "/v1/users", { params: { query: { after: pageParam, limit: 1000 } } }, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
    select: (data) => data.pages.flatMap((page) => page.users) as readonly User[],
  });
  const { hasNextPage, isFetching, fetchNextPage } = query;
  if (hasNextPage && !isFetching) void fetchNextPage();
  return { data: query.data ?? (query.isSuccess ? NOBODY : undefined), error: query.error, refetch: query.refetch };
}

function AddForm({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const canChange = useCanChange();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Schemas["Role"]>("user");
  const [password, setPassword] = useState("");
  const [made, setMade] = useState<Schemas["NewUser"] | null>(null);
  const open = useCallback(
    (user: string) => {
      onClose();
      navigate(`/people/${encodeURIComponent(user)}`);
    },
    [navigate, onClose],
  );
  const add = useChange("post", "/v1/users", {
    onSuccess: (answer) => {
      refetch((path) => path === "/v1/users");
      if (answer.password === null) open(answer.user.name);
      else setMade(answer);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate({ body: { name: name.trim(), role, password: password === "" ? null : password } });
  };
  if (made !== null)
    return (
      <Secret
        title={words.secret.password(made.user.name)}
        value={made.password}
        onClose={() => open(made.user.name)}
      />
    );
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <TextInput
          label={words.form.name}
          description={words.form.nameHint}
          required
          maxLength={60}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          data-autofocus
          value={name}
          error={add.error?.of("name")}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <RoleSelect role={role} onChange={setRole} error={add.error?.of("role")} />
        <PasswordInput
          label={words.form.password}
          description={words.form.passwordHint}
          autoComplete="new-password"
          value={password}
          error={add.error?.of("password")}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        {add.error !== null && add.error.problems.length === 0 && <Problem error={add.error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={add.isPending} disabled={!canChange || name.trim() === ""}>
            {words.form.submit}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const ROLES: readonly Schemas["Role"][] = ["viewer", "user", "operator", "admin"];

interface RoleProps {
  role: Schemas["Role"];
  onChange: (role: Schemas["Role"]) => void;
  error?: string | null | undefined;
  disabled?: boolean;
}

/** A role, and what it means. */
export function RoleSelect({ role, onChange, error, disabled }: RoleProps) {
  return (
    <Select
      label={words.form.role}
      description={words.roleHints[role]}
      data={ROLES.map((one) => ({ value: one, label: words.roles[one] ?? one }))}
      value={role}
      onChange={(value) => value !== null && onChange(value as Schemas["Role"])}
      allowDeselect={false}
      error={error}
      disabled={disabled ?? false}
    />
  );
}
