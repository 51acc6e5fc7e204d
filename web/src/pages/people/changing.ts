import { call, type Schemas } from "../../api/client";
import type { Changing } from "../../api/useRevised";

type User = Schemas["UserView"];

const said = ({ role, active }: User) => [role, active];
const read = (name: string) => call("get", "/v1/users/{name}", { params: { path: { name } } });

/** How somebody's account is changed: a new password of theirs makes a revision, too, often at their first log-on. */
export function changingOf(name: string): Changing<User, Schemas["UserPatch"], User> {
  return {
    read: () => read(name),
    write: (header, body) => call("patch", "/v1/users/{name}", { params: { path: { name }, header }, body }),
    said,
  };
}

/** The same for removing it. */
export function removingOf(name: string): Changing<User, undefined, unknown> {
  return {
    read: () => read(name),
    write: (header) => call("delete", "/v1/users/{name}", { params: { path: { name }, header } }),
    said,
  };
}
