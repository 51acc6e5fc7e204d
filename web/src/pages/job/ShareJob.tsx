import { useChange, useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { ShareDialog } from "../../components/ShareDialog";
import type { Job } from "./facts";

/** Lets other people see a job, its logs and results. */
export function ShareJob({ job, onClose }: { job: Job; onClose: () => void }) {
  const path = { job_id: job.id };
  const shares = useGet("/v1/jobs/{job_id}/shares", { params: { path } }, { fresh: true });
  const change = useChange("put", "/v1/jobs/{job_id}/shares", {
    onSuccess: onClose,
    onSettled: () => shares.refetch(),
  });
  return (
    <Answer query={shares}>
      {({ shared_with, revision }) => (
        <ShareDialog
          name={`${job.id} ${job.spec.name}`}
          sharedWith={shared_with}
          onClose={onClose}
          onSave={(people) =>
            change.mutate({
              params: { path, header: { "if-match": `"${revision}"` } },
              body: { shared_with: people },
            })
          }
          pending={change.isPending}
          error={change.error}
        />
      )}
    </Answer>
  );
}
