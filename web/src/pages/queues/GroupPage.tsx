import { Button } from "@mantine/core";
import { Link, useNavigate, useParams } from "react-router";
import { useChange, useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { Confirm } from "../../components/Confirm";
import { Crumbs } from "../../components/Crumbs";
import { Facts, Figures } from "../../components/Facts";
import { Answer, Loading } from "../../components/Notice";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { useAddress } from "../../components/useAddress";
import { count, NONE } from "../../format/format";
import { text } from "../../text";
import type { GroupView } from "./bar";
import { GroupDialog } from "./GroupDialog";
import { sayHosts } from "./group_words";
import { Members } from "./Members";
import { Legend } from "./QueueBar";
import { QueueRows } from "./QueueRows";
import classes from "./queues.module.css";

const words = text.queues;

/** One resource group: its slots now, the hosts that it has them of, and the queues over it. */
export default function GroupPage() {
  const { name = "" } = useParams();
  const query = useGet("/v1/resource-groups/{name}", { params: { path: { name } } });
  const mayWrite = useMay("pool:write");
  const address = useAddress();
  const close = () => address.set({ dialog: null });
  return (
    <Page
      title={name}
      heading={<Crumbs above={[{ to: "/queues", title: text.nav.queues }]} name={name} />}
      actions={
        mayWrite &&
        query.data !== undefined && (
          <>
            {name !== "all" && (
              <>
                <Button variant="default" onClick={() => address.set({ dialog: "delete" })}>
                  {text.remove}
                </Button>
                <Button variant="default" onClick={() => address.set({ dialog: "edit" })}>
                  {text.edit}
                </Button>
              </>
            )}
            <Button component={Link} to={`/queues?new=queue&group=${encodeURIComponent(name)}`}>
              {words.newQueue}
            </Button>
          </>
        )
      }
    >
      <Answer query={query} rows={5}>
        {(group) => (
          <>
            <Shown group={group} />
            {mayWrite && address.get("dialog") === "edit" && <GroupDialog group={group} onClose={close} />}
            {mayWrite && address.get("dialog") === "delete" && <Remove group={group} onClose={close} />}
          </>
        )}
      </Answer>
    </Page>
  );
}

function Shown({ group: view }: { group: GroupView }) {
  const { group } = view;
  const all = useGet("/v1/queues", {});
  const queues = all.data?.queues.filter((one) => one.queue.resource_group === group.name);
  return (
    <>
      <Figures
        figures={[
          { label: words.slots, value: count(view.num_slots) },
          { label: words.hostsLabel, value: count(view.hosts.length) },
          { label: text.nav.queues, value: count(view.queues.length) },
        ]}
      />
      {view.notes.map((note) => (
        <p key={note} className={`${classes.remark} wrap`}>
          {note}
        </p>
      ))}
      <div className={classes.columns}>
        <div className={classes.stack}>
          <Panel title={words.groupQueues} aside={queues !== undefined && queues.length > 0 && <Legend />}>
            {queues === undefined ? (
              <Loading rows={1} />
            ) : queues.length > 0 ? (
              <div className={classes.flush}>
                <QueueRows queues={queues} />
              </div>
            ) : (
              <span className="dim">{words.noQueues}</span>
            )}
          </Panel>
          <Members hosts={view.hosts} aside={words.counted(view.hosts.length)} />
        </div>
        <Panel title={words.settings}>
          <Facts
            facts={[
              {
                label: words.slotsPerHost,
                value: group.slots_per_host == null ? words.allSlots : <code>{group.slots_per_host}</code>,
              },
              { label: words.hostsLabel, value: sayHosts(group.hosts ?? {}) },
              { label: words.fields.description ?? "", value: group.description || NONE },
              { label: words.fields.owner ?? "", value: group.owner || NONE },
            ]}
          />
        </Panel>
      </div>
    </>
  );
}

function Remove({ group, onClose }: { group: GroupView; onClose: () => void }) {
  const navigate = useNavigate();
  const { name } = group.group;
  const remove = useChange("delete", "/v1/resource-groups/{name}", { onSuccess: () => navigate("/queues") });
  return (
    <Confirm
      opened
      onClose={onClose}
      title={words.removeGroup(name)}
      action={words.remove}
      pending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate({ params: { path: { name }, header: { "if-match": `"${group.revision}"` } } })}
    >
      {words.removeGroupHint}
    </Confirm>
  );
}
