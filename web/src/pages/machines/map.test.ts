import { expect, test } from "vitest";
import { exclusionsOf, numSlots, seatOf, whoIsThere } from "./map";
import { holder, machine, slot } from "./played";

const ECC = { by: "bob", at: 1000, because: "ECC errors" };

test("a slot is held, held by others, excluded, free or closed", () => {
  const held = slot(0, holder("job-1", 0));
  const others = { ...slot(1), taken: true };
  const here = machine({});
  expect([held, others, slot(2)].map((one) => seatOf(here, one))).toEqual(["held", "others", "free"]);
  const drained = machine({ state: "drained", drained_by: "bob" });
  expect(seatOf(drained, slot(2))).toBe("closed");
  expect(seatOf(machine({ state: "away" }), slot(2))).toBe("closed");
  expect(seatOf(drained, held)).toBe("held");
  expect(seatOf(here, { ...slot(2), excluded: ECC })).toBe("excluded");
  expect(seatOf(drained, { ...slot(2), excluded: ECC })).toBe("excluded");
  expect(seatOf(here, { ...held, excluded: ECC })).toBe("held");
});

test("a slot that is excluded counts until who holds it has left", () => {
  const held = { ...slot(1, holder("job-1", 0)), excluded: ECC };
  expect(numSlots(machine({ slots: [slot(0), held, { ...slot(2), excluded: ECC }] }))).toBe(2);
});

test("slots are counted by job, a shared one by its parts, with the colour of the job", () => {
  const one = holder("job-1", 0);
  const two = holder("job-2", 9, "night");
  const { entries, others } = whoIsThere(
    [machine({ slots: [slot(0, one), slot(1, one, two), { ...slot(2), taken: true }] })],
    "job",
  );
  expect(entries.map((entry) => [entry.key, entry.slots, entry.colour])).toEqual([
    ["job-1", 1.5, 0],
    ["job-2", 0.5, 9],
  ]);
  expect(others).toBe(1);
});

test("queues are counted by their own colours", () => {
  const slots = [slot(0, holder("job-1", 0)), slot(1, holder("job-2", 1))];
  const { entries } = whoIsThere([machine({ slots })], "queue");
  expect(entries).toEqual([{ key: "default", name: "default", colour: 5, slots: 2 }]);
});

test("slots that were excluded at once for one reason are told of together", () => {
  const fan = { ...ECC, because: "its fan" };
  const slots = [0, 1, 2, 3].map((number) => slot(number));
  const excluded = [ECC, null, fan, ECC].map((why, number) => ({ ...slot(number), excluded: why }));
  expect(exclusionsOf(machine({ slots }))).toEqual([]);
  expect(exclusionsOf(machine({ slots: excluded }))).toEqual([
    { slots: [0, 3], ...ECC },
    { slots: [2], ...fan },
  ]);
});

test("a machine that is excluded as a whole is told of once", () => {
  const slots = [0, 1].map((number) => ({ ...slot(number), excluded: ECC }));
  expect(exclusionsOf(machine({ slots, excluded: ECC, state: "excluded" }))).toEqual([{ slots: [], ...ECC }]);
});
