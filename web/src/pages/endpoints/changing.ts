import { call, type Schemas } from "../../api/client";
import type { Changing } from "../../api/useRevised";
import { GROUPS } from "./profile";
import type { EndpointView } from "./shown";

/** How what people say of an endpoint is changed: what becomes of its versions makes revisions, too. */
export function changingOf(name: string): Changing<EndpointView, Schemas["EndpointPatch"], EndpointView> {
  const path = { name };
  return {
    read: () => call("get", "/v1/endpoints/{name}", { params: { path } }),
    write: (header, body) => call("patch", "/v1/endpoints/{name}", { params: { path, header }, body }),
    said: (endpoint) => [...Object.values(GROUPS).flat(), "shared_with" as const].map((field) => endpoint[field]),
  };
}
