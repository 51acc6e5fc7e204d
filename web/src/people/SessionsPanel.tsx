import { Badge, Button } from "@mantine/core";
import { useState } from "react";
import { refetch } from "../api/cache";
import type { Schemas } from "../api/client";
import { useChange, useGet } from "../api/queries";
import { useCanChange } from "../app/Connection";
import { useMe } from "../app/session";
import { Confirm } from "../components/Confirm";
import { Answer } from "../components/Notice";
import { Panel } from "../components/Panel";
import { type ShortColumn, ShortTable } from "../components/ShortTable";
import { Time } from "../components/Time";
import { NONE } from "../format/format";
import { text } from "../text";

type Session = Schemas["SessionView"];
const words = text.people.sessions;

/** Where somebody is logged on; each session can be ended. */
export function SessionsPanel({ owner }: { owner: string }) {
  const own = useMe().name === owner;
  const mine = useGet("/v1/me/sessions", {}, { enabled: own, fresh: true });
  const theirs = useGet(
    "/v1/users/{name}/sessions",
    { params: { path: { name: owner } } },
    { enabled: !own, fresh: true },
  );
  const sessions = own ? mine : theirs;
  const canChange = useCanChange();
  const [asked, setAsked] = useState<Session | null>(null);
  const onSuccess = () => {
    setAsked(null);
    refetch((path) => path === "/v1/me" || path.endsWith("/sessions"));
  };
  const endMine = useChange("delete", "/v1/me/sessions/{session_id}", { onSuccess });
  const endTheirs = useChange("delete", "/v1/users/{name}/sessions/{session_id}", { onSuccess });
  const end = own ? endMine : endTheirs;
  const confirm = () => {
    if (asked === null) return;
    if (own) endMine.mutate({ params: { path: { session_id: asked.id } } });
    else endTheirs.mutate({ params: { path: { name: owner, session_id: asked.id } } });
  };
  const columns: ShortColumn<Session>[] = [
    {
      title: words.columns.by,
      cell: (session) => (
        <span>
          <Time at={session.created_at} /> {words.ways[session.by] ?? session.by}{" "}
          {session.current && (
            <Badge variant="outline" size="sm" tt="none">
              {words.current}
            </Badge>
          )}
        </span>
      ),
    },
    { title: words.columns.from, cell: (session) => session.address || NONE },
    { title: words.columns.used, tight: true, cell: (session) => <Time at={session.last_used_at} /> },
    { title: words.columns.expires, tight: true, cell: (session) => <Time at={session.expires_at} /> },
    {
      title: words.columns.end,
      action: true,
      cell: (session) => (
        <Button
          variant="default"
          disabled={!canChange}
          onClick={() => {
            end.reset();
            setAsked(session);
          }}
        >
          {words.end}
        </Button>
      ),
    },
  ];
  return (
    <Panel title={words.title}>
      <Answer query={sessions} rows={2}>
        {(page) =>
          page.sessions.length === 0 ? (
            <span className="dim">{words.none}</span>
          ) : (
            <ShortTable
              label={words.list(owner)}
              columns={columns}
              rows={page.sessions}
              rowId={(session) => session.id}
            />
          )
        }
      </Answer>
      <Confirm
        opened={asked !== null}
        onClose={() => setAsked(null)}
        title={words.endAsk}
        action={words.end}
        pending={end.isPending}
        error={end.error}
        onConfirm={confirm}
      >
        {asked?.current ? words.endOwn : words.endWhat(asked?.address || NONE)}
      </Confirm>
    </Panel>
  );
}
