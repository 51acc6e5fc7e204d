import { expect, test } from "vitest";
import { changingOf, removingOf } from "./changing";

const SHOWN = {
  name: "ada",
  role: "user",
  active: true,
  created_at: 1,
  changed_at: 1,
  password_changed_at: 1,
  revision: 1,
} as const;

test("a new password of theirs is no change of what an administrator has set", () => {
  const later = { ...SHOWN, changed_at: 9, password_changed_at: 9, revision: 2 };
  for (const { said } of [changingOf("ada"), removingOf("ada")]) {
    expect(said(later)).toEqual(said(SHOWN));
    expect(said({ ...later, role: "admin" })).not.toEqual(said(SHOWN));
    expect(said({ ...later, active: false })).not.toEqual(said(SHOWN));
  }
});
