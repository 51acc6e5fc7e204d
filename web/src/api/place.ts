/** Where the console lies: the path of the server, without the slash at its end. Empty unless a proxy gives it one. */
export const PREFIX = new URL(document.baseURI).pathname.replace(/\/[^/]*$/, "");

/** The address of a route of the server, such as `/v1/jobs`. */
export function addressOf(path: string): string {
  return `${PREFIX}${path}`;
}
