import { Button } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { downloadOf, type Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Answer, Empty } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { Time } from "../../components/Time";
import { bytes, count } from "../../format/format";
import { text } from "../../text";
import classes from "./Job.module.css";

const words = text.job.results;

/** What the job leaves: the files it wrote, its checkpoints, and its code. */
export default function Results({ detail }: { detail: Schemas["JobDetail"] }) {
  const { id } = detail.job;
  const files = useGet("/v1/jobs/{job_id}/files", { params: { path: { job_id: id } } });
  const checkpoints = useGet("/v1/jobs/{job_id}/checkpoints", { params: { path: { job_id: id } } });
  return (
    <>
      <Panel
        title={words.files}
        aside={
          <div className={classes.tools}>
            {(files.data?.files.length ?? 0) > 0 && <Fetch path={`/v1/jobs/${id}/result`}>{words.all}</Fetch>}
            <Fetch path={`/v1/jobs/${id}/code`}>{words.code}</Fetch>
          </div>
        }
      >
        <Answer query={files}>
          {(found) => (
            <>
              {found.files.length === 0 ? (
                <Empty title={words.none} hint={words.noneHint} command={words.command(id)} />
              ) : (
                <FilesTable id={id} files={found.files} />
              )}
              {found.left_out.length > 0 && (
                <>
                  <p>{words.leftOut(found.left_out.length)}</p>
                  <ul className="wrap">
                    {found.left_out.map((line) => (
                      <li key={line}>{line}</li>
                    ))}
                  </ul>
                </>
              )}
            </>
          )}
        </Answer>
      </Panel>
      <Panel title={words.checkpoints}>
        <Answer query={checkpoints}>
          {(found) =>
            found.checkpoints.length === 0 ? (
              <span className="dim">{words.noCheckpoints}</span>
            ) : (
              <ShortTable
                label={words.checkpoints}
                columns={CHECKPOINTS}
                rows={[...found.checkpoints].reverse()}
                rowId={(checkpoint) => String(checkpoint.step)}
                slim
              />
            )
          }
        </Answer>
      </Panel>
    </>
  );
}

const CHECKPOINTS: readonly ShortColumn<Schemas["CheckpointFile"]>[] = [
  { title: words.step, numeric: true, cell: (checkpoint) => count(checkpoint.step) },
  { title: words.size, numeric: true, cell: (checkpoint) => bytes(checkpoint.num_bytes) },
  { title: words.at, tight: true, cell: (checkpoint) => <Time at={checkpoint.at} /> },
];

function FilesTable({ id, files }: { id: string; files: readonly Schemas["ResultFile"][] }) {
  const columns: readonly ShortColumn<Schemas["ResultFile"]>[] = [
    {
      title: words.path,
      cell: ({ path }) => (
        <a href={downloadOf(fileAddress(id, path))} download aria-label={words.download(path)}>
          <bdi>{path}</bdi>
        </a>
      ),
    },
    { title: words.size, numeric: true, cell: (file) => bytes(file.num_bytes) },
    { title: words.changed, tight: true, cell: (file) => <Time at={file.changed_at} /> },
  ];
  return <ShortTable label={words.files} columns={columns} rows={files} rowId={(file) => file.path} slim />;
}

/** The route of a file: each part of its path by itself, whatever characters it has. */
export function fileAddress(id: string, path: string): string {
  return `/v1/jobs/${encodeURIComponent(id)}/files/${path.split("/").map(encodeURIComponent).join("/")}`;
}

function Fetch({ path, children }: { path: string; children: ReactNode }) {
  return (
    <Button component="a" href={downloadOf(path)} download variant="default" leftSection={<IconDownload size={16} />}>
      {children}
    </Button>
  );
}
