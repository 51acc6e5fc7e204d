import { call, type Schemas } from "../../api/client";
import type { Changing } from "../../api/useRevised";
import type { SearchView } from "./shown";

/** How what people say of a search is changed: every decision of the search makes a revision, too. */
export function changingOf(name: string): Changing<SearchView, Schemas["SearchPatch"], SearchView> {
  const path = { name };
  return {
    read: () => call("get", "/v1/searches/{name}", { params: { path } }),
    write: (header, body) => call("patch", "/v1/searches/{name}", { params: { path, header }, body }),
    said: ({ settings }) => settings,
  };
}
