import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { base64, computeSha256, sha256, sha256OfText } from "./sha256";

test.each([0, 1, 3, 55, 56, 63, 64, 65, 119, 120, 1000])(
  "the digest of %d bytes is that of everybody else",
  async (n) => {
    const bytes = Uint8Array.from({ length: n }, (_, i) => (i * 31 + n) % 256);
    const expected = new Uint8Array(createHash("sha256").update(bytes).digest());
    expect(computeSha256(bytes)).toEqual(expected);
    expect(await sha256(bytes)).toEqual(expected);
    expect(base64(expected)).toBe(Buffer.from(expected).toString("base64"));
  },
);

test("a text is taken as UTF-8", () => {
  expect(sha256OfText("é🙂")).toBe(createHash("sha256").update("é🙂").digest("hex"));
});
