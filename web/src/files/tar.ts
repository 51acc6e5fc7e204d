/**
 * A tar of files, as a Blob that holds none of their bytes: the browser reads each file when the tar is sent, and any
 * piece of it can be sent again. The same files give the same bytes. Names that ustar has no room for stand in a pax
 * header (POSIX.1-2001), so that they may be long and in any script.
 */

export interface TarFile {
  /** Relative, with slashes. */
  name: string;
  content: Blob;
}

const BLOCK = 512;
const MAX_NAME = 100;
/** What the eleven octal digits of a header hold. */
const MAX_SIZE = 8 ** 11 - 1;

const encoder = new TextEncoder();

/** A name as it may stand in an archive; null if it leads out of it, or is none. */
export function cleanName(path: string): string | null {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length === 0 || parts.includes("..") || path.includes("\0")) return null;
  return parts.join("/");
}

/** A tar of files, in the order of their names. */
export function tarOf(files: readonly TarFile[]): Blob {
  const parts: BlobPart[] = [];
  for (const file of inOrder(files)) {
    parts.push(...headersOf(file.name, file.content.size), file.content, zeros(-file.content.size));
  }
  parts.push(zeros(2 * BLOCK, 2 * BLOCK));
  return new Blob(parts, { type: "application/x-tar" });
}

/** The same, compressed. */
export function tarGzOf(files: readonly TarFile[]): Promise<Blob> {
  const packed = tarOf(files).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(packed, { headers: { "Content-Type": "application/gzip" } }).blob();
}

function inOrder(files: readonly TarFile[]): TarFile[] {
  return [...files].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function headersOf(name: string, size: number): Uint8Array<ArrayBuffer>[] {
  const bytes = encoder.encode(name);
  const records: string[] = [];
  if (bytes.length > MAX_NAME || bytes.length !== name.length) records.push(record("path", name));
  if (size > MAX_SIZE) records.push(record("size", String(size)));
  const header = headerOf(bytes.subarray(0, MAX_NAME), size > MAX_SIZE ? 0 : size, "0");
  if (records.length === 0) return [header];
  const said = encoder.encode(records.join(""));
  return [headerOf(encoder.encode("././@PaxHeader"), said.length, "x"), said, zeros(-said.length), header];
}

/** A record of pax: its own length in bytes, a key and a value. */
function record(key: string, value: string): string {
  const rest = encoder.encode(` ${key}=${value}\n`).length;
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function headerOf(name: Uint8Array, size: number, type: string): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(BLOCK);
  const write = (at: number, value: string) => header.set(encoder.encode(value), at);
  header.set(name, 0);
  write(100, "0000644\0"); // mode
  write(108, "0000000\0"); // user
  write(116, "0000000\0"); // group
  write(124, `${octal(size, 11)}\0`);
  write(136, `${octal(0, 11)}\0`); // time: none, so that the same files give the same bytes
  write(148, " ".repeat(8)); // the sum counts itself as spaces
  write(156, type);
  write(257, "ustar\x0000");
  const sum = header.reduce((total, byte) => total + byte, 0);
  write(148, `${octal(sum, 6)}\0 `);
  return header;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

/** So many zeros that `length` more bytes end a block; or as many as `exactly`. */
function zeros(length: number, exactly = ((length % BLOCK) + BLOCK) % BLOCK): Uint8Array<ArrayBuffer> {
  return new Uint8Array(exactly);
}
