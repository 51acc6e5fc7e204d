import { Button, Code, NumberInput, Select, Stack, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { refetch } from "../../api/cache";
import type { Schemas } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Dialog } from "../../components/Dialog";
import { FormActions } from "../../components/FormActions";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { Time } from "../../components/Time";
import { Secret } from "../../people/Secret";
import { text } from "../../text";

type JoinToken = Schemas["JoinTokenView"];
const words = text.machines.join;
const PATH = "/v1/machines/tokens";
const MAX_USES = 1000;

const again = () => refetch((path) => path === PATH);

/** Makes a token with which machines join, and shows it once. */
export function JoinButton() {
  const mayWrite = useMay("pool:write");
  const canChange = useCanChange();
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<Schemas["MadeJoinToken"] | null>(null);
  if (!mayWrite) return null;
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconPlus size={16} />}
        disabled={!canChange}
        onClick={() => setMaking(true)}
      >
        {words.open}
      </Button>
      <Dialog opened={making} onClose={() => setMaking(false)} title={words.title}>
        {making && (
          <JoinForm
            onClose={() => setMaking(false)}
            onMade={(token) => {
              setMaking(false);
              setMade(token);
              again();
            }}
          />
        )}
      </Dialog>
      <Secret title={words.made} value={made?.token ?? null} onClose={() => setMade(null)}>
        <div>
          {words.type}
          <Code block className="wrap" mt="xs">
            {made?.command}
          </Code>
        </div>
      </Secret>
    </>
  );
}

interface FormProps {
  onClose: () => void;
  onMade: (token: Schemas["MadeJoinToken"]) => void;
}

function JoinForm({ onClose, onMade }: FormProps) {
  const [machine, setMachine] = useState("");
  const [uses, setUses] = useState<number | string>(1);
  const [valid, setValid] = useState("3600");
  const make = useChange("post", PATH, { onSuccess: onMade });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    make.mutate({
      body: { machine: machine.trim() === "" ? null : machine.trim(), valid_s: Number(valid), max_uses: Number(uses) },
    });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <div className="wrap">{words.hint}</div>
        <TextInput
          label={words.machine}
          description={words.machineHint}
          data-autofocus
          value={machine}
          error={make.error?.of("machine")}
          onChange={(event) => setMachine(event.currentTarget.value)}
        />
        <NumberInput
          label={words.uses}
          description={words.usesHint}
          min={1}
          max={MAX_USES}
          allowDecimal={false}
          value={uses}
          error={make.error?.of("max_uses")}
          onChange={setUses}
        />
        <Select
          label={words.valid}
          data={Object.entries(words.validOf).map(([value, label]) => ({ value, label }))}
          value={valid}
          onChange={(value) => setValid(value ?? valid)}
          allowDeselect={false}
          error={make.error?.of("valid_s")}
        />
        {make.error !== null && make.error.problems.length === 0 && <Problem error={make.error} />}
        <FormActions verb={words.make} pending={make.isPending} disabled={uses === ""} onClose={onClose} />
      </Stack>
    </form>
  );
}

/** The tokens that are good still. */
export function JoinTokens() {
  const mayWrite = useMay("pool:write");
  const canChange = useCanChange();
  const tokens = useGet(PATH, {}, { fresh: true, enabled: mayWrite });
  const [asked, setAsked] = useState<JoinToken | null>(null);
  const revoke = useChange("delete", "/v1/machines/tokens/{token_id}", {
    onSuccess: () => {
      setAsked(null);
      again();
    },
  });
  if (tokens.data === undefined || tokens.data.tokens.length === 0) return null;
  const columns: ShortColumn<JoinToken>[] = [
    { title: words.columns.machine, cell: (token) => token.machine ?? words.any },
    { title: words.columns.by, cell: (token) => token.owner },
    { title: words.columns.used, tight: true, cell: (token) => words.used(token.num_uses, token.max_uses) },
    { title: words.columns.until, tight: true, cell: (token) => <Time at={token.expires_at} /> },
    {
      title: words.columns.revoke,
      action: true,
      cell: (token) => (
        <Button
          variant="default"
          disabled={!canChange}
          aria-label={`${words.revoke}: ${token.machine ?? words.any}`}
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
    <Panel title={words.tokens}>
      <ShortTable label={words.tokens} columns={columns} rows={tokens.data.tokens} rowId={(token) => token.id} />
      <Confirm
        opened={asked !== null}
        onClose={() => setAsked(null)}
        title={words.revokeAsk(asked?.machine ?? words.any)}
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
