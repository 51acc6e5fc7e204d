import { useMutation } from "@tanstack/react-query";
import { call } from "../../api/client";
import { Refused } from "../../api/problem";
import type { Job } from "./facts";
import { formOf, type Patch } from "./form";

const TRIES = 8;

interface Change {
  /** The job as it was when the change was made up. */
  shown: Job;
  patch: Patch;
}

/**
 * Changes what people say of a job. Every task that joins makes a revision, too, so a stale one alone says nothing:
 * what counts is whether somebody has changed what the form shows. Then the server's refusal is thrown.
 */
export function useJobPatch(onDone: () => void) {
  return useMutation<unknown, Refused, Change>({
    mutationFn: async ({ shown, patch }) => {
      const path = { job_id: shown.id };
      let known = shown;
      for (let attempt = 1; ; attempt += 1) {
        try {
          const header = { "if-match": `"${known.revision ?? 0}"` };
          return await call("patch", "/v1/jobs/{job_id}", { params: { path, header }, body: patch });
        } catch (error) {
          if (!(error instanceof Refused) || error.status !== 412 || attempt === TRIES) throw error;
          known = (await call("get", "/v1/jobs/{job_id}", { params: { path } })).job;
          if (JSON.stringify(formOf(known)) !== JSON.stringify(formOf(shown))) throw error;
        }
      }
    },
    onSuccess: onDone,
  });
}
