import { expect, test } from "vitest";
import { isOutdated } from "./invalidation";

const event = (kind: string, job: string | null = null) =>
  ({ kind, job_id: job, at: 0, seq: 1, message: "", data: {} }) as Parameters<typeof isOutdated>[0];

test("the state of a job is also that of the training that it is", () => {
  for (const path of ["/v1/trainings", "/v1/models/{name}/trainings", "/v1/models/{name}/trainings/{training}"]) {
    expect(isOutdated(event("job.state", "job-1"), path, {})).toBe(true);
    expect(isOutdated(event("model.saved", "job-1"), path, {})).toBe(true);
    expect(isOutdated(event("decision", "job-1"), path, {})).toBe(false);
  }
});
