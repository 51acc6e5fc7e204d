import { Button } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { downloadOf, type Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Answer, Empty } from "../../components/Notice";
import { Panel } from "../../components/Panel";
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
              <table className={classes.table} style={{ maxWidth: 480 }}>
                <thead>
                  <tr>
                    <th scope="col" className="num">
                      {words.step}
                    </th>
                    <th scope="col" className="num">
                      {words.size}
                    </th>
                    <th scope="col">{words.at}</th>
                  </tr>
                </thead>
                <tbody>
                  {[...found.checkpoints].reverse().map((checkpoint) => (
                    <tr key={checkpoint.step}>
                      <td className="num">{count(checkpoint.step)}</td>
                      <td className="num">{bytes(checkpoint.num_bytes)}</td>
                      <td>
                        <Time at={checkpoint.at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )
          }
        </Answer>
      </Panel>
    </>
  );
}

function FilesTable({ id, files }: { id: string; files: readonly Schemas["ResultFile"][] }) {
  return (
    <section className={classes.box} tabIndex={0} aria-label={words.files}>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">{words.path}</th>
            <th scope="col" className="num">
              {words.size}
            </th>
            <th scope="col">{words.changed}</th>
          </tr>
        </thead>
        <tbody>
          {files.map((file) => (
            <tr key={file.path}>
              <th scope="row" className="wrap">
                <a href={downloadOf(fileAddress(id, file.path))} download aria-label={words.download(file.path)}>
                  <bdi>{file.path}</bdi>
                </a>
              </th>
              <td className="num">{bytes(file.num_bytes)}</td>
              <td>
                <Time at={file.changed_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
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
