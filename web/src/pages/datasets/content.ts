/** What is uploaded of files that were chosen, and by what the server is asked for it again after a reload. */
import type { Chosen } from "../../files/chosen";
import { sha256OfText } from "../../files/sha256";
import { tarOf } from "../../files/tar";

export interface Content {
  /** All bytes; the browser reads them when they are sent. */
  blob: Blob;
  /** Another one as soon as names, lengths or times of the files are others. */
  digest: string;
}

const AS_IT_IS = /\.(tar|tar\.gz|tgz|zip|csv|tsv)$/i;

/** An archive or a table alone is sent as it is, all else as a tar. */
export function contentOf(chosen: Chosen): Content {
  const [only] = chosen.files;
  const alone = !chosen.isFolder && only !== undefined && AS_IT_IS.test(only.name);
  const lines = chosen.files.map(({ name, content }) => `${content.size} ${content.lastModified} ${name}\n`);
  return {
    blob: alone ? only.content : tarOf(chosen.files),
    digest: sha256OfText(`${alone ? "file" : "folder"}\n${lines.join("")}`),
  };
}

const MARK = "console";

/** What an upload is known again by: the data set that it is for, and its files. */
export function fingerprintOf(name: string, digest: string): string {
  return `${MARK} ${name} ${digest}`;
}

/** The data set that an upload was begun for; null if it was not begun here. */
export function nameIn(fingerprint: string): string | null {
  const [mark, name, digest] = fingerprint.split(" ");
  return mark === MARK && name !== undefined && digest !== undefined ? name : null;
}

/** The files that an upload has; null if it was not begun here. */
export function digestIn(fingerprint: string): string | null {
  return nameIn(fingerprint) === null ? null : (fingerprint.split(" ")[2] ?? null);
}

/** A name that a data set can have, as near to a file's as the rules allow. */
export function nameFrom(chosen: Chosen): string {
  const bare = chosen.isFolder ? chosen.name : chosen.name.replace(AS_IT_IS, "");
  return bare
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+|-+$/g, "")
    .slice(0, 100);
}
