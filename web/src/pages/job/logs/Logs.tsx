import { Button, Select, Switch, TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { IconDownload, IconSearch } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { downloadOf, type Schemas } from "../../../api/client";
import { useGet } from "../../../api/queries";
import { Answer, Empty, Loading, Problem } from "../../../components/Notice";
import { useAddress } from "../../../components/useAddress";
import { bytes } from "../../../format/format";
import { text } from "../../../text";
import { isOver } from "../facts";
import { plainOf } from "./ansi";
import { inOrder, type LogFile, nameOf, newestFile } from "./files";
import classes from "./Log.module.css";
import { LogLines } from "./LogLines";
import { useLog } from "./useLog";

const words = text.job.logs;
/** Files that grow are no events. */
const FILES_MS = 5000;
const NEWEST = "";

/** What the tasks of a job have written, as it comes. */
export default function Logs({ detail }: { detail: Schemas["JobDetail"] }) {
  const { job } = detail;
  const address = useAddress();
  const over = isOver(job);
  const files = useGet(
    "/v1/jobs/{job_id}/logs",
    { params: { path: { job_id: job.id } } },
    { refetchInterval: over ? false : FILES_MS },
  );
  return (
    <Answer query={files} rows={3}>
      {(known) => {
        const file = known.find((one) => nameOf(one) === address.get("log")) ?? newestFile(known);
        if (file === null)
          return <Empty title={words.none} hint={words.noneHint} command={`pliant logs -f ${job.id}`} />;
        return <Log key={nameOf(file)} job={job.id} files={known} file={file} over={over} />;
      }}
    </Answer>
  );
}

interface Props {
  job: string;
  files: readonly LogFile[];
  file: LogFile;
  over: boolean;
}

function Log({ job, files, file, over }: Props) {
  const address = useAddress();
  const [wrap, setWrap] = useLocalStorage({
    key: "pliant-log-wrap",
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  const at = placeOf(address.get("at"));
  const follows = at === null && address.get("follow") !== "no";
  const place = { job, task: file.task_id, stream: file.stream };
  const { state, error, earlier, later, broken } = useLog(place, at, follows && !over);
  const path = `/v1/jobs/${encodeURIComponent(job)}/logs/${encodeURIComponent(file.task_id)}/${encodeURIComponent(file.stream)}`;
  const choices = [
    { value: NEWEST, label: words.newest },
    ...inOrder(files).map((one) => ({
      value: nameOf(one),
      label: `${one.task_id} ${one.stream}, ${bytes(one.num_bytes)}`,
    })),
  ];
  return (
    <>
      <div className={classes.tools}>
        <Select
          className={classes.file}
          label={words.file}
          data={choices}
          value={address.get("log") ?? NEWEST}
          allowDeselect={false}
          searchable={files.length > 12}
          onChange={(value) => address.set({ log: value, at: null, find: null })}
        />
        <FindField key={address.get("find") ?? ""} />
        <Switch
          label={words.follow}
          checked={follows && !over}
          disabled={over}
          onChange={(event) => address.set({ follow: event.currentTarget.checked ? null : "no", at: null })}
        />
        <Switch label={words.wrap} checked={wrap} onChange={(event) => setWrap(event.currentTarget.checked)} />
        <Button
          component="a"
          href={downloadOf(path, { download: "true" })}
          download
          variant="default"
          leftSection={<IconDownload size={16} />}
        >
          {text.download}
        </Button>
      </div>
      <Found key={address.get("find") ?? ""} job={job} file={file} />
      {broken && <p role="status">{words.broken}</p>}
      {error !== null && <Problem error={new Error(error)} />}
      {state === null && error === null && <Loading rows={4} />}
      {state !== null && (
        <LogLines
          state={state}
          wrap={wrap}
          found={at}
          follows={follows}
          onFollow={(on) => address.set({ follow: on ? null : "no", ...(on && { at: null }) })}
          earlier={earlier}
          later={later}
        />
      )}
    </>
  );
}

function placeOf(given: string | null): number | null {
  if (given === null || !/^\d{1,15}$/.test(given)) return null;
  return Number(given);
}

function FindField() {
  const address = useAddress();
  const [typed, setTyped] = useState(address.get("find") ?? "");
  const find = (event: FormEvent) => {
    event.preventDefault();
    address.set({ find: typed, at: typed === "" ? null : address.get("at") });
  };
  return (
    <form onSubmit={find} className={classes.find}>
      <TextInput
        type="search"
        label={words.find}
        leftSection={<IconSearch size={16} aria-hidden />}
        maxLength={200}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </form>
  );
}

/** Lines that hold what one looks for; a press goes there. */
function Found({ job, file }: { job: string; file: LogFile }) {
  const address = useAddress();
  const sought = address.get("find") ?? "";
  const [from, setFrom] = useState<readonly number[]>([0]);
  const offset = from.at(-1) ?? 0;
  const path = { job_id: job, task_id: file.task_id, stream: file.stream };
  const found = useGet(
    "/v1/jobs/{job_id}/logs/{task_id}/{stream}/find",
    { params: { path, query: { text: sought.slice(0, 200), offset } } },
    { enabled: sought !== "" },
  );
  if (sought === "") return null;
  const at = placeOf(address.get("at"));
  return (
    <Answer query={found} rows={1}>
      {(answer) => (
        <div>
          <div className={classes.tools}>
            <span role="status">
              {answer.lines.length === 0 ? words.foundNone : words.found(answer.lines.length, answer.next !== null)}
            </span>
            {from.length > 1 && (
              <Button variant="default" onClick={() => setFrom(from.slice(0, -1))}>
                {words.previous}
              </Button>
            )}
            {answer.next !== null && (
              <Button variant="default" onClick={() => setFrom([...from, answer.next ?? 0])}>
                {words.next}
              </Button>
            )}
            <Button variant="subtle" onClick={() => address.set({ find: null, at: null })}>
              {words.close}
            </Button>
          </div>
          {answer.lines.length > 0 && (
            <ul className={classes.found} aria-label={words.foundLabel}>
              {answer.lines.map((line) => (
                <li key={line.offset}>
                  <button
                    type="button"
                    className="cut"
                    aria-current={line.offset === at ? "true" : undefined}
                    onClick={() => address.set({ at: String(line.offset) })}
                  >
                    <bdi>{plainOf(line.text.slice(0, 400)) || " "}</bdi>
                  </button>
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </Answer>
  );
}
