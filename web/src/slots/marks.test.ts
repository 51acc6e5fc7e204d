import { expect, test } from "vitest";
import { clustersOf, type SlotMark } from "./marks";

function mark(at: number, seq = at): SlotMark {
  return {
    seq,
    at,
    kind: "grew",
    message: "",
    name: "",
    who: "",
    colour: null,
    from_slots: 1,
    to_slots: 2,
    job_id: "job-1",
  };
}

test("marks that are near are one, those outside are none", () => {
  const clusters = clustersOf([mark(50), mark(10), mark(20), mark(-5), mark(300)], (at) => at, 200, 24);
  expect(clusters.map((cluster) => [cluster.left, cluster.marks.map((one) => one.at)])).toEqual([
    [10, [10, 20]],
    [50, [50]],
  ]);
});

test("marks of one moment stay in the order in which they were recorded", () => {
  const [cluster] = clustersOf([mark(5, 9), mark(5, 2)], (at) => at, 200, 24);
  expect(cluster?.marks.map((one) => one.seq)).toEqual([2, 9]);
});
