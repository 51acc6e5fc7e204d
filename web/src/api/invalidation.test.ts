import { expect, test } from "vitest";
import { distinct, isOutdated } from "./invalidation";

const event = (kind: string, job: string | null = null, data: Record<string, string> = {}) =>
  ({ kind, job_id: job, at: 0, seq: 1, message: "", data }) as Parameters<typeof isOutdated>[0];
const named = (name: string) => ({ path: { name } });

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

test.each([
  ["dataset.changed", "/v1/datasets"],
  ["environment.changed", "/v1/environments"],
  ["template.changed", "/v1/templates"],
  ["model.changed", "/v1/models"],
  ["endpoint.changed", "/v1/endpoints"],
  ["search.changed", "/v1/searches"],
  ["algorithm.changed", "/v1/algorithms"],
])("%s makes the list out of date, and the one of that name alone", (kind, path) => {
  const changed = event(kind, null, { name: "one" });
  expect(isOutdated(changed, path, { query: { limit: 1000 } })).toBe(true);
  expect(isOutdated(changed, `${path}/{name}`, named("one"))).toBe(true);
  expect(isOutdated(changed, `${path}/{name}`, named("two"))).toBe(false);
  expect(isOutdated(changed, `${path}s`, {})).toBe(false);
  const unnamed = event(kind); // something is gone, and it is not said what
  expect(isOutdated(unnamed, path, {})).toBe(true);
  expect(isOutdated(unnamed, `${path}/{name}`, named("two"))).toBe(true);
});

test("uploads, and the trainings of models, are shown anew", () => {
  expect(isOutdated(event("upload.changed"), "/v1/uploads", {})).toBe(true);
  expect(isOutdated(event("upload.changed"), "/v1/datasets", {})).toBe(false);
  expect(isOutdated(event("model.changed", null, { name: "net" }), "/v1/trainings", {})).toBe(true);
});

test("a share makes lists of jobs out of date, and the job; one without a name all that are shown", () => {
  const given = event("share.changed", "job-1", { name: "job-1" });
  const taken = event("share.changed");
  for (const path of ["/v1/jobs/rows", "/v1/overview"]) expect(isOutdated(given, path, {})).toBe(true);
  expect(isOutdated(given, "/v1/jobs/{job_id}", { path: { job_id: "job-2" } })).toBe(false);
  expect(isOutdated(given, "/v1/jobs/{job_id}/shares", { path: { job_id: "job-1" } })).toBe(true);
  expect(isOutdated(taken, "/v1/jobs/{job_id}", { path: { job_id: "job-2" } })).toBe(true);
  expect(isOutdated(taken, "/v1/jobs/{job_id}/checkpoints", { path: { job_id: "job-2" } })).toBe(false);
});

test("slots of a trial change its search, and nothing that is dear to compute", () => {
  const slots = event("slots.changed", "job-9", { search: "digits", name: "trial" });
  expect(isOutdated(slots, "/v1/searches/{name}", named("digits"))).toBe(true);
  expect(isOutdated(slots, "/v1/searches/{name}", named("other"))).toBe(false);
  expect(isOutdated(event("search.changed"), "/v1/searches/{name}/importances", named("digits"))).toBe(false);
});

test("slots of others, which are told without a job, make the pool out of date", () => {
  for (const path of ["/v1/cluster", "/v1/machines", "/v1/overview"]) {
    expect(isOutdated(event("slots.changed"), path, {})).toBe(true);
  }
});

test("of many events about the same the last is looked at, and none about another one is lost", () => {
  const events = ["one", "two", "one"].map((name) => event("dataset.changed", null, { name }));
  const states = ["running", "completed"].map((to) => event("job.state", "job-1", { to }));
  expect(distinct([...events, ...states])).toHaveLength(4);
});
