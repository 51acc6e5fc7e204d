import { expect, test } from "vitest";
import { EventParser } from "./event_stream";

const TEXT = 'id: 7\nevent: job.state\ndata: {"seq":7}\n\n: ping\n\ndata: one\ndata: two\r\n\r\nid: 8\n\n';

test("events come whole, however they are cut", () => {
  const whole = new EventParser().push(TEXT);
  expect(whole).toEqual([
    { id: "7", kind: "job.state", data: '{"seq":7}' },
    { id: "", kind: "message", data: "one\ntwo" },
  ]);
  for (let cut = 1; cut < TEXT.length; cut += 1) {
    const parser = new EventParser();
    expect([...parser.push(TEXT.slice(0, cut)), ...parser.push(TEXT.slice(cut))], `cut at ${cut}`).toEqual(whole);
  }
});
