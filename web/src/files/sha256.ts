/**
 * SHA-256 (FIPS 180-4). The browser's own is only there over HTTPS and on the same machine; elsewhere this one does
 * the same, slower.
 */

// the first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the square roots of 8
const { K, START } = constants();

function constants(): { K: Uint32Array; START: Uint32Array } {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n += 1) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  const fraction = (value: number) => Math.floor((value % 1) * 2 ** 32);
  return {
    K: Uint32Array.from(primes, (prime) => fraction(Math.cbrt(prime))),
    START: Uint32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime))),
  };
}

/** The digest of bytes. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  if (globalThis.crypto?.subtle) return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return computeSha256(bytes);
}

/** The digest of a text, in hex. */
export function sha256OfText(text: string): string {
  return [...computeSha256(new TextEncoder().encode(text))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The digest of bytes, in base64. */
export function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

export function computeSha256(bytes: Uint8Array): Uint8Array {
  const whole = bytes.length - (bytes.length % 64);
  const rest = new Uint8Array(bytes.length - whole < 56 ? 64 : 128);
  rest.set(bytes.subarray(whole));
  rest[bytes.length - whole] = 0x80;
  const length = new DataView(rest.buffer);
  length.setUint32(rest.length - 8, Math.floor(bytes.length / 2 ** 29));
  length.setUint32(rest.length - 4, (bytes.length * 8) % 2 ** 32);
  const state = START.slice();
  const words = new Uint32Array(64);
  for (let at = 0; at < whole; at += 64) mix(state, words, new DataView(bytes.buffer, bytes.byteOffset + at, 64));
  for (let at = 0; at < rest.length; at += 64) mix(state, words, new DataView(rest.buffer, at, 64));
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, index) => {
    digest.setUint32(index * 4, word);
  });
  return new Uint8Array(digest.buffer);
}

function mix(state: Uint32Array, words: Uint32Array, block: DataView): void {
  for (let i = 0; i < 16; i += 1) words[i] = block.getUint32(i * 4);
  for (let i = 16; i < 64; i += 1) {
    const a = words[i - 15] as number;
    const b = words[i - 2] as number;
    const s0 = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3);
    const s1 = turn(b, 17) ^ turn(b, 19) ^ (b >>> 10);
    words[i] = (words[i - 16] as number) + s0 + (words[i - 7] as number) + s1;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i += 1) {
    const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const first = (h + s1 + ((e & f) ^ (~e & g)) + (K[i] as number) + (words[i] as number)) | 0;
    const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => {
    state[index] = (state[index] as number) + word;
  });
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
