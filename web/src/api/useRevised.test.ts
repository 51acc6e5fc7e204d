import { expect, test } from "vitest";
import { Refused } from "./problem";
import { type Changing, changeRevised, Stale } from "./useRevised";

interface Thing {
  revision: number;
  priority: number;
  numTasks: number;
}

/** A server that has a thing; `between` is called before each change. */
function serverOf(now: Thing, between: (thing: Thing) => Thing) {
  const state = { now, tries: 0 };
  const changing: Changing<Thing, Partial<Thing>, Thing> = {
    read: async () => state.now,
    write: async (header, body) => {
      state.tries += 1;
      state.now = between(state.now);
      if (header["if-match"] !== `"${state.now.revision}"`) throw new Refused(412, "it has changed");
      state.now = { ...state.now, ...body, revision: state.now.revision + 1 };
      return state.now;
    },
    said: ({ priority }) => priority,
  };
  return { state, changing };
}

const SHOWN: Thing = { revision: 1, priority: 5, numTasks: 1 };

test("what moves by itself does not make a person's change fail", async () => {
  let moves = 3;
  const moving = (one: Thing) =>
    moves-- > 0 ? { ...one, revision: one.revision + 1, numTasks: one.numTasks + 1 } : one;
  const { state, changing } = serverOf(SHOWN, moving);
  await changeRevised(changing, SHOWN, { priority: 9 });
  expect(state).toEqual({ now: { revision: 5, priority: 9, numTasks: 4 }, tries: 4 });
});

test("what somebody else has changed is not overwritten, and told", async () => {
  const theirs = { ...SHOWN, revision: 2, priority: 7 };
  const { state, changing } = serverOf(theirs, (one) => one);
  const refused = await changeRevised(changing, SHOWN, { priority: 9 }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(Stale);
  expect((refused as Stale<Thing>).theirs).toEqual(theirs);
  expect((refused as Stale<Thing>).status).toBe(412);
  expect(state.now).toEqual(theirs);
  await changeRevised(changing, theirs, { priority: 9 });
  expect(state.now.priority).toBe(9);
});

test("what never stands still is given up, and other refusals are passed on", async () => {
  const { state, changing } = serverOf(SHOWN, (one) => ({ ...one, revision: one.revision + 1 }));
  await expect(changeRevised(changing, SHOWN, {})).rejects.toMatchObject({ status: 412 });
  expect(state.tries).toBe(8);
  const write = () => Promise.reject(new Refused(403, "not yours"));
  await expect(changeRevised({ ...changing, write }, SHOWN, {})).rejects.toMatchObject({ status: 403 });
});
