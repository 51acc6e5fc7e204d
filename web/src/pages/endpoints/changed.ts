import { refetch } from "../../api/cache";

/** Ask for endpoints again, at once. */
export function endpointsChanged(): void {
  refetch((path) => path.startsWith("/v1/endpoints"));
}
