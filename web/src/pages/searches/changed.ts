import { refetch } from "../../api/cache";

/** Ask for searches again, at once. */
export function searchesChanged(): void {
  refetch((path) => path.startsWith("/v1/searches"));
}
