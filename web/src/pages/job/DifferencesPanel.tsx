import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { type ShortColumn, ShortTable } from "../../components/ShortTable";
import { text } from "../../text";
import { differences } from "./facts";

const words = text.job.config;

/** In what two jobs were submitted differently. */
export function DifferencesPanel({ mine, theirs }: { mine: string; theirs: string }) {
  const one = useGet("/v1/jobs/{job_id}", { params: { path: { job_id: mine } } });
  const other = useGet("/v1/jobs/{job_id}", { params: { path: { job_id: theirs } } }, { retry: false });
  return (
    <Panel title={`${words.diff} ${theirs}`}>
      <Answer query={other}>
        {(their) => {
          if (one.data === undefined) return null;
          const found = differences(one.data.job.spec, their.job.spec);
          if (found.length === 0) return <span className="dim">{words.same}</span>;
          const shown = (value: string | null) => value ?? <span className="dim">{words.none}</span>;
          const columns: ShortColumn<(typeof found)[number]>[] = [
            { title: words.field, tight: true, cell: (row) => <span className="mono">{row.field}</span> },
            { title: mine, cell: (row) => shown(row.mine) },
            { title: theirs, cell: (row) => shown(row.theirs) },
          ];
          return (
            <ShortTable
              label={words.onlyChanged(found.length)}
              columns={columns}
              rows={found}
              rowId={(row) => row.field}
            />
          );
        }}
      </Answer>
    </Panel>
  );
}
