import { Button, Group, MultiSelect, Select, Stack, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { refetch } from "../api/cache";
import type { Schemas } from "../api/client";
import { useChange, useGet } from "../api/queries";
import { useCanChange } from "../app/Connection";
import { type Permission, useMe } from "../app/session";
import { Confirm } from "../components/Confirm";
import { Dialog } from "../components/Dialog";
import { Answer, Problem } from "../components/Notice";
import { Panel } from "../components/Panel";
import { type ShortColumn, ShortTable } from "../components/ShortTable";
import { Time, useNow } from "../components/Time";
import { text } from "../text";
import { Secret } from "./Secret";
import { DAYS, endsAfter, scopesOf } from "./scopes";

type Token = Schemas["TokenView"];
const words = text.people.tokens;

/** The personal tokens of somebody; who sees their own can make some. */
export function TokensPanel({ owner }: { owner: string }) {
  const own = useMe().name === owner;
  const canChange = useCanChange();
  const tokens = useGet("/v1/tokens", { params: { query: { owner } } }, { fresh: true });
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<Schemas["NewToken"] | null>(null);
  const [asked, setAsked] = useState<Token | null>(null);
  const again = () => refetch((path) => path === "/v1/tokens");
  const revoke = useChange("delete", "/v1/tokens/{token_id}", {
    onSuccess: () => {
      setAsked(null);
      again();
    },
  });
  const columns: ShortColumn<Token>[] = [
    { title: words.columns.label, cell: (token) => token.label },
    { title: words.columns.scopes, cell: scopesOf },
    {
      title: words.columns.used,
      tight: true,
      cell: (token) => (token.last_used_at === null ? words.never : <Time at={token.last_used_at} />),
    },
    { title: words.columns.expires, tight: true, cell: (token) => <Ends at={token.expires_at} /> },
    {
      title: words.columns.revoke,
      action: true,
      cell: (token) => (
        <Button
          variant="default"
          disabled={!canChange}
          aria-label={`${words.revoke}: ${token.label}`}
          onClick={() => {
            revoke.reset();
            setAsked(token);
          }}
        >
          {words.revoke}
        </Button>
      ),
    },
  ];
  return (
    <Panel
      title={words.title}
      aside={
        own && (
          <Button
            variant="default"
            leftSection={<IconPlus size={16} />}
            disabled={!canChange}
            onClick={() => setMaking(true)}
          >
            {words.make}
          </Button>
        )
      }
    >
      <Answer query={tokens} rows={2}>
        {(page) =>
          page.tokens.length === 0 ? (
            <p className="dim" style={{ margin: 0 }}>
              {words.none} {words.hint}
            </p>
          ) : (
            <ShortTable label={words.list(owner)} columns={columns} rows={page.tokens} rowId={(token) => token.id} />
          )
        }
      </Answer>
      <Dialog opened={making} onClose={() => setMaking(false)} title={words.make}>
        {making && (
          <TokenForm
            onMade={(token) => {
              setMaking(false);
              setMade(token);
              again();
            }}
          />
        )}
      </Dialog>
      <Secret
        title={text.people.secret.token(made?.info.label ?? "")}
        value={made?.token ?? null}
        onClose={() => setMade(null)}
      />
      <Confirm
        opened={asked !== null}
        onClose={() => setAsked(null)}
        title={words.revokeAsk(asked?.label ?? "")}
        action={words.revoke}
        pending={revoke.isPending}
        error={revoke.error}
        onConfirm={() => asked !== null && revoke.mutate({ params: { path: { token_id: asked.id } } })}
      >
        {words.revokeWhat}
      </Confirm>
    </Panel>
  );
}

function Ends({ at }: { at: number }) {
  const now = useNow();
  if (at <= now) return <span className="dim">{words.ended}</span>;
  return <Time at={at} />;
}

function TokenForm({ onMade }: { onMade: (token: Schemas["NewToken"]) => void }) {
  const me = useMe();
  const canChange = useCanChange();
  const [label, setLabel] = useState("");
  const [scopes, setScopes] = useState<string[]>([]);
  const [days, setDays] = useState("90");
  const make = useChange("post", "/v1/tokens", { onSuccess: onMade });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    make.mutate({
      body: {
        label: label.trim(),
        scopes: scopes.length === 0 ? null : (scopes as Permission[]),
        expires_at: endsAfter(Number(days), Date.now() / 1000),
      },
    });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <TextInput
          label={words.form.label}
          description={words.form.labelHint}
          required
          maxLength={120}
          data-autofocus
          value={label}
          error={make.error?.of("label")}
          onChange={(event) => setLabel(event.currentTarget.value)}
        />
        <MultiSelect
          label={words.form.scopes}
          description={words.form.scopesHint}
          placeholder={scopes.length === 0 ? words.form.everything : undefined}
          data={me.permissions.map((scope) => ({ value: scope, label: text.people.permissions[scope] ?? scope }))}
          value={scopes}
          onChange={setScopes}
          error={make.error?.of("scopes")}
          clearable
        />
        <Select
          label={words.form.days}
          data={DAYS.map((number) => ({ value: String(number), label: words.form.daysOf(number) }))}
          value={days}
          onChange={(value) => setDays(value ?? days)}
          allowDeselect={false}
          error={make.error?.of("expires_at")}
        />
        {make.error !== null && make.error.problems.length === 0 && <Problem error={make.error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={make.isPending} disabled={!canChange || label.trim() === ""}>
            {words.form.submit}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
