/** Where to go after log-on: a path inside the console, never another site's address. */
export function inside(to: string | null): string {
  if (to === null || !to.startsWith("/") || to.startsWith("//") || to.includes("\\") || hasControl(to)) return "/";
  const url = new URL(to, "http://console.invalid");
  if (url.origin !== "http://console.invalid" || url.pathname.startsWith("//")) return "/";
  return url.pathname.startsWith("/logon") ? "/" : `${url.pathname}${url.search}${url.hash}`;
}

function hasControl(value: string): boolean {
  return [...value].some((letter) => letter < " ");
}
