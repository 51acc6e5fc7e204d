import { Button, Code, Group } from "@mantine/core";
import { Link } from "react-router";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { CopyButton } from "../../components/Copy";
import { Answer } from "../../components/Notice";
import { Page } from "../../components/Page";
import { useAddress } from "../../components/useAddress";
import { counted } from "../../format/format";
import { text } from "../../text";
import { type Section, sectionsOf } from "./bar";
import { GroupDialog } from "./GroupDialog";
import { sayHosts, saySlots } from "./group_words";
import { Legend } from "./QueueBar";
import { QueueDialog } from "./QueueDialog";
import { QueueRows } from "./QueueRows";
import classes from "./queues.module.css";

const words = text.queues;

/** Who deserves how many slots, and who uses them: every resource group with the queues over it. */
export default function Queues() {
  const groups = useGet("/v1/resource-groups", {});
  const queues = useGet("/v1/queues", {});
  const mayWrite = useMay("pool:write");
  const address = useAddress();
  const both = {
    data: groups.data && queues.data && { groups: groups.data.groups, queues: queues.data.queues },
    error: groups.error ?? queues.error,
    refetch: () => Promise.all([groups.refetch(), queues.refetch()]),
  };
  const close = () => address.set({ new: null, group: null });
  return (
    <Page
      title={text.nav.queues}
      actions={
        mayWrite && (
          <>
            <Button variant="default" onClick={() => address.set({ new: "group" })}>
              {words.newGroup}
            </Button>
            <Button onClick={() => address.set({ new: "queue" })}>{words.newQueue}</Button>
          </>
        )
      }
    >
      <Answer query={both} rows={4} height={96}>
        {(found) => (
          <>
            <Legend />
            {sectionsOf(found.groups, found.queues).map((section) => (
              <GroupSection key={section.group.group.name} section={section} mayWrite={mayWrite} />
            ))}
            {found.queues.length <= 1 && mayWrite && <Hint />}
          </>
        )}
      </Answer>
      {mayWrite && address.get("new") === "queue" && (
        <QueueDialog group={address.get("group") ?? undefined} onClose={close} />
      )}
      {mayWrite && address.get("new") === "group" && <GroupDialog onClose={close} />}
    </Page>
  );
}

function GroupSection({ section: { group: view, queues }, mayWrite }: { section: Section; mayWrite: boolean }) {
  const { group } = view;
  return (
    <section className={classes.group} aria-label={`${words.group} ${group.name}`}>
      <header className={classes.groupHead}>
        <h2 className="cut">
          <Link to={`/queues/groups/${encodeURIComponent(group.name)}`} title={group.name}>
            {group.name}
          </Link>
        </h2>
        <b>{counted(view.num_slots, "slot")}</b>
        <span className="dim wrap">
          {saySlots(group)} · {sayHosts(group.hosts ?? {})}
        </span>
      </header>
      {queues.length > 0 && <QueueRows queues={queues} />}
      {(view.notes.length > 0 || queues.length === 0) && (
        <div className={`${classes.note} wrap`}>
          {view.notes.map((note) => (
            <div key={note}>{note}</div>
          ))}
          {queues.length === 0 && (
            <div>
              {words.noQueues}{" "}
              {mayWrite && (
                <Link className={classes.link} to={`/queues?new=queue&group=${encodeURIComponent(group.name)}`}>
                  {words.newQueue}
                </Link>
              )}
            </div>
          )}
        </div>
      )}
    </section>
  );
}

function Hint() {
  return (
    <Group gap="xs" className="dim">
      <span>{words.hint}</span>
      <Code className="cut">{words.hintCommand}</Code>
      <CopyButton value={words.hintCommand} />
    </Group>
  );
}
