import { expect, test } from "vitest";
import { fieldsOf, hostsOf, isLabel, sayHosts, saySlots, slotsOf, whatIsMissing } from "./group_words";

const NEW = fieldsOf(undefined);

test("a new group has all slots of all hosts", () => {
  expect([slotsOf(NEW), hostsOf(NEW), whatIsMissing(NEW)]).toEqual([null, { all: true }, null]);
});

test("a number is sent as one, a formula as it is written", () => {
  expect(slotsOf({ ...NEW, byFormula: true, formula: " 4 " })).toBe(4);
  expect(slotsOf({ ...NEW, byFormula: true, formula: "min(ngpus, 4)" })).toBe("min(ngpus, 4)");
  expect(slotsOf({ ...NEW, byFormula: true, formula: "99999999" })).toBe("99999999");
  expect(whatIsMissing({ ...NEW, byFormula: true, formula: " " })).toBe("formula");
});

test("hosts are chosen in one way", () => {
  expect(hostsOf({ ...NEW, hosts: "names", names: ["gpu1"], labels: ["a=b"] })).toEqual({
    all: false,
    names: ["gpu1"],
  });
  expect(hostsOf({ ...NEW, hosts: "labels", labels: ["kind=gpu", "path=a=b"] })).toEqual({
    all: false,
    labels: { kind: "gpu", path: "a=b" },
  });
  expect(whatIsMissing({ ...NEW, hosts: "labels" })).toBe("labels");
  expect([isLabel("kind=gpu"), isLabel("kind="), isLabel("=x"), isLabel("kind")]).toEqual([true, true, false, false]);
});

test("what is shown can be edited", () => {
  const group = {
    name: "gpus",
    description: "",
    owner: "ada",
    slots_per_host: "ngpus",
    hosts: { names: null, labels: { kind: "gpu" } },
  };
  const fields = fieldsOf(group);
  expect([slotsOf(fields), hostsOf(fields)]).toEqual(["ngpus", { all: false, labels: { kind: "gpu" } }]);
  expect([saySlots(group), sayHosts(group.hosts)]).toEqual(["ngpus per host", "kind=gpu"]);
  expect(sayHosts({ names: ["a", "b", "c", "d", "e"] })).toBe("5 hosts");
});
