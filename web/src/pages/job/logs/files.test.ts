import { expect, test } from "vitest";
import { inOrder, newestFile } from "./files";

const file = (task_id: string, stream: string, num_bytes: number) => ({ task_id, stream, num_bytes });

test("the output of the newest task is looked at; its errors if it wrote nothing else", () => {
  const files = [file("job-1-2", "stdout", 5), file("job-1-10", "stderr", 7), file("job-1-10", "stdout", 0)];
  expect(newestFile(files)).toEqual(file("job-1-10", "stderr", 7));
  expect(inOrder(files).map((one) => `${one.task_id} ${one.stream}`)).toEqual([
    "job-1-10 stdout",
    "job-1-10 stderr",
    "job-1-2 stdout",
  ]);
  expect(newestFile([])).toBeNull();
});
