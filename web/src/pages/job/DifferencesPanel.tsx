import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { text } from "../../text";
import { differences } from "./facts";
import classes from "./Job.module.css";

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
          return (
            <section className={classes.box} tabIndex={0} aria-label={words.onlyChanged(found.length)}>
              <table className={classes.table}>
                <thead>
                  <tr>
                    <th scope="col">{words.field}</th>
                    <th scope="col">{mine}</th>
                    <th scope="col">{theirs}</th>
                  </tr>
                </thead>
                <tbody>
                  {found.map(({ field, mine: before, theirs: after }) => (
                    <tr key={field}>
                      <th scope="row" className="mono">
                        {field}
                      </th>
                      <td className="wrap">{before ?? <span className="dim">{words.none}</span>}</td>
                      <td className="wrap">{after ?? <span className="dim">{words.none}</span>}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          );
        }}
      </Answer>
    </Panel>
  );
}
