import { Select, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { ask } from "../../api/client";
import { addressOf } from "../../api/place";
import { useGet } from "../../api/queries";
import { Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { Snippet } from "../../components/Snippet";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import classes from "./Endpoints.module.css";
import { plainText } from "./log_text";
import { type EndpointView, mainVersion } from "./shown";

const words = text.endpoints.logs;
/** What kernels print is no event. */
const REFRESH_MS = 2_000;
const NUM_LINES = 500;

/** What the kernels of a version write. */
export function Logs({ endpoint }: { endpoint: EndpointView }) {
  const address = useAddress();
  const chosen = Number(address.get("version")) || mainVersion(endpoint)?.number;
  const version = endpoint.versions.find((one) => one.number === chosen);
  const job = version?.job_id ?? null;
  const follows = address.get("follow") !== "no";
  const files = useGet(
    "/v1/jobs/{job_id}/logs",
    { params: { path: { job_id: job ?? "" } } },
    { enabled: job !== null, refetchInterval: follows ? REFRESH_MS : false },
  );
  const known = (files.data ?? []).map((file) => `${file.task_id}/${file.stream}`);
  const alive = version?.kernels.map((kernel) => kernel.task_id) ?? [];
  const written = (files.data ?? []).flatMap((file) => (file.num_bytes > 0 ? [`${file.task_id}/${file.stream}`] : []));
  const usual =
    written.findLast((file) => alive.some((task) => file.startsWith(`${task}/`))) ??
    written.at(-1) ??
    known.at(-1) ??
    null;
  const file = known.find((one) => one === address.get("file")) ?? usual;
  const log = useQuery<string, Error>({
    queryKey: ["log", job, file],
    queryFn: async ({ signal }) => {
      const path = `/v1/jobs/${job}/logs/${file?.split("/").map(encodeURIComponent).join("/")}?tail=${NUM_LINES}`;
      return plainText(await (await ask(addressOf(path), { signal })).text());
    },
    enabled: job !== null && file !== null,
    refetchInterval: follows ? REFRESH_MS : false,
  });
  return (
    <Panel title={words.title} aside={job !== null && <Link to={`/jobs/${job}/logs`}>{words.whole}</Link>}>
      <div className={classes.picture} style={{ marginBottom: 12, alignItems: "flex-end" }}>
        <Select
          label={words.version}
          w={120}
          allowDeselect={false}
          data={[...endpoint.versions].reverse().map((one) => String(one.number))}
          value={chosen === undefined ? null : String(chosen)}
          onChange={(value) => address.set({ version: value, file: null })}
        />
        <Select
          label={words.task}
          w={240}
          allowDeselect={false}
          data={known}
          value={file}
          disabled={known.length === 0}
          onChange={(value) => address.set({ file: value })}
        />
        <Switch
          label={words.follow}
          mb={6}
          checked={follows}
          onChange={(event) => address.set({ follow: event.currentTarget.checked ? null : "no" })}
        />
      </div>
      {log.error && <Problem error={log.error} />}
      {job === null ? (
        <Text c="dimmed">{words.noJob}</Text>
      ) : log.data ? (
        <Snippet code={log.data} label={words.label} maxHeight={520} />
      ) : (
        <Text c="dimmed">{words.none}</Text>
      )}
    </Panel>
  );
}
