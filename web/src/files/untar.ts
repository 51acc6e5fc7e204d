/** Reads a tar.gz that the server sent: its files, with their names and contents. */

export interface Unpacked {
  path: string;
  content: Uint8Array<ArrayBuffer>;
}

const BLOCK = 512;
const decoder = new TextDecoder();

/** The files in an archive, in the order of their names. Folders and links are left out. */
export async function unpack(archive: Blob): Promise<Unpacked[]> {
  const plain = archive.stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(plain).arrayBuffer());
  const found: Unpacked[] = [];
  let said: Record<string, string> = {};
  for (let at = 0; at + BLOCK <= bytes.length; ) {
    const header = bytes.subarray(at, at + BLOCK);
    if (header[0] === 0) break;
    const kind = String.fromCharCode(header[156] ?? 0);
    const size = said.size === undefined ? Number.parseInt(field(header, 124, 12), 8) || 0 : Number(said.size);
    const content = bytes.slice(at + BLOCK, at + BLOCK + size);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    if (kind === "x") {
      said = recordsOf(content);
      continue;
    }
    if (kind === "0" || kind === "\0") found.push({ path: said.path ?? nameOf(header), content });
    said = {};
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function nameOf(header: Uint8Array): string {
  const prefix = field(header, 345, 155);
  return prefix === "" ? field(header, 0, 100) : `${prefix}/${field(header, 0, 100)}`;
}

function field(header: Uint8Array, at: number, length: number): string {
  const bytes = header.subarray(at, at + length);
  const end = bytes.indexOf(0);
  return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end));
}

/** The records of a pax header: each its length, a key and a value. */
function recordsOf(content: Uint8Array): Record<string, string> {
  const records: Record<string, string> = {};
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(32, at);
    const length = Number(decoder.decode(content.subarray(at, space)));
    if (space < 0 || !(length > 0)) break;
    const record = decoder.decode(content.subarray(space + 1, at + length - 1));
    const equals = record.indexOf("=");
    records[record.slice(0, equals)] = record.slice(equals + 1);
    at += length;
  }
  return records;
}

/** What a file says; null if it is no text. */
export function textOf(content: Uint8Array<ArrayBuffer>): string | null {
  if (content.subarray(0, 8192).includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return null;
  }
}
