import type { Schemas } from "../../../api/client";
import { useAddress } from "../../../components/useAddress";
import { HistogramPanel } from "../../../histograms/HistogramPanel";
import { isOver } from "../facts";
import { Board } from "./Board";
import { jobsOf } from "./curves";

/** What a job has measured, and others with it. */
export default function Metrics({ detail }: { detail: Schemas["JobDetail"] }) {
  const address = useAddress();
  const { id } = detail.job;
  const others = jobsOf(address.get("with")).filter((other) => other !== id);
  const ids = [id, ...others];
  return (
    <>
      <Board key={ids.join()} ids={ids} canOverlay />
      {isTraining(detail.job) && <HistogramPanel jobId={id} live={!isOver(detail.job)} />}
    </>
  );
}

function isTraining(job: Schemas["Job"]): boolean {
  return !job.spec.fixed && job.spec.endpoint == null;
}
