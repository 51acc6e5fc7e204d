import { useMemo } from "react";
import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { Page } from "../../components/Page";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import { DEFAULTS, typedOfJob } from "./fields";
import { SubmitForm } from "./SubmitForm";

const words = text.submission;

/** Submit a training: what will happen, and how one says the same elsewhere, beside the form. */
export default function Submit() {
  const from = useAddress().get("from");
  return from === null ? (
    <Page title={words.title}>
      <SubmitForm key="new" from={null} base={DEFAULTS} />
    </Page>
  ) : (
    <Again key={from} id={from} />
  );
}

function Again({ id }: { id: string }) {
  const job = useGet("/v1/jobs/{job_id}", { params: { path: { job_id: id } } });
  const spec = job.data?.job.spec;
  // what was submitted does not change, while everything else about a job does
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same job has the same settings
  const base = useMemo(() => (job.data ? typedOfJob(job.data.job) : null), [JSON.stringify(spec)]);
  return (
    <Page title={words.titleAgain(id)} heading={words.titleAgain(spec === undefined ? id : `${id} ${spec.name}`)}>
      <Answer query={job} rows={4} height={96}>
        {() => base && <SubmitForm from={id} base={base} />}
      </Answer>
    </Page>
  );
}
