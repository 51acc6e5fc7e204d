import { QueryObserver } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";
import { cache, refetch } from "./cache";

test("news about an answer on its way do not ask anew: it is shown, and then asked for once more", async () => {
  const answers: ((value: number) => void)[] = [];
  const observer = new QueryObserver<number>(cache, {
    queryKey: ["get", "/v1/jobs"],
    queryFn: () => new Promise<number>((resolve) => answers.push(resolve)),
  });
  const shown: (number | undefined)[] = [];
  const stop = observer.subscribe(({ data }) => shown.push(data));
  const isJobs = (path: string) => path === "/v1/jobs";

  for (const number of [0, 1]) {
    await vi.waitFor(() => expect(answers).toHaveLength(2 * number + 1));
    for (let news = 0; news < 3; news++) refetch(isJobs);
    expect(answers).toHaveLength(2 * number + 1);
    answers[2 * number]?.(10 * number);
    await vi.waitFor(() => expect(answers).toHaveLength(2 * number + 2));
    expect(shown.at(-1)).toBe(10 * number);
    answers[2 * number + 1]?.(10 * number + 1);
    await vi.waitFor(() => expect(shown.at(-1)).toBe(10 * number + 1));
    expect(answers).toHaveLength(2 * number + 2);
    refetch(isJobs);
  }
  stop();
});

test("what nobody shows is asked for when it is shown next", async () => {
  let asked = 0;
  const options = { queryKey: ["get", "/v1/queues"], queryFn: () => Promise.resolve(++asked) };
  await cache.fetchQuery(options);
  refetch((path) => path === "/v1/queues");
  expect(asked).toBe(1);
  const stop = new QueryObserver(cache, options).subscribe(() => undefined);
  await vi.waitFor(() => expect(asked).toBe(2));
  stop();
});
