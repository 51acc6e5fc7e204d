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

test("a queue or a machine that changes is shown anew, and what if it was changed", () => {
  for (const path of ["/v1/queues/{name}", "/v1/resource-groups/{name}", "/v1/machines", "/v1/queues/{name}/preview"]) {
    expect(isOutdated(event("queue.changed"), path, {})).toBe(true);
    expect(isOutdated(event("machine.changed"), path, {})).toBe(true);
    expect(isOutdated(event("decision", "job-1"), path, {})).toBe(true);
    expect(isOutdated(event("epoch.finished", "job-1"), path, {})).toBe(false);
  }
});
