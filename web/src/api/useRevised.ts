import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Refused } from "./problem";

const TRIES = 8;

/** What the server keeps with a number that grows with every change. */
export interface Revised {
  revision?: number;
}

export interface Changing<T extends Revised, B, A> {
  /** Ask how it is now. */
  read: () => Promise<T>;
  /** Send a change, with the header that says which revision it is of. */
  write: (header: { "if-match": string }, body: B) => Promise<A>;
  /** What people say of it. If that is as it was shown, the revision has moved by itself. */
  said: (thing: T) => unknown;
}

/**
 * Change something that may have moved by itself since it was shown: a job by its tasks, a search by its decisions, a data
 * set by its import. A stale revision alone says nothing; what counts is whether somebody has changed what people say of it.
 *
 * @throws Stale somebody has; with how it is now
 */
export async function changeRevised<T extends Revised, B, A>(
  { read, write, said }: Changing<T, B, A>,
  shown: T,
  body: B,
): Promise<A> {
  let known = shown;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write({ "if-match": `"${known.revision ?? 0}"` }, body);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 412 || attempt === TRIES) throw error;
      known = await read();
      if (JSON.stringify(said(known)) !== JSON.stringify(said(shown))) throw new Stale(error, known);
    }
  }
}

/** Somebody has changed it meanwhile: to what. */
export class Stale<T extends Revised> extends Refused {
  readonly theirs: T;

  constructor(error: Refused, theirs: T) {
    super(error.status, error.message, error.problems);
    this.name = "Stale";
    this.theirs = theirs;
  }
}

interface Options<T extends Revised, B, A> extends Changing<T, B, A> {
  onSuccess?: (answer: A) => void;
  onSettled?: () => void;
}

/**
 * `change.mutate({ shown, body })`: refused with 412 only if somebody has changed it since it was shown. `theirs` is what it
 * is then, and the next try is about that: who has seen it may overwrite it.
 */
export function useRevised<T extends Revised, B, A = unknown>(options: Options<T, B, A>) {
  const seen = useRef<T | null>(null);
  const [theirs, setTheirs] = useState<T | null>(null);
  const change = useMutation<A, Refused, { shown: T; body: B }>({
    mutationFn: ({ shown, body }) => {
      const newest =
        seen.current !== null && (seen.current.revision ?? 0) > (shown.revision ?? 0) ? seen.current : shown;
      return changeRevised(options, newest, body);
    },
    onError: (error) => {
      if (!(error instanceof Stale)) return;
      seen.current = error.theirs as T;
      setTheirs(error.theirs as T);
    },
    onSuccess: (answer) => {
      setTheirs(null);
      options.onSuccess?.(answer);
    },
    ...(options.onSettled && { onSettled: options.onSettled }),
  });
  return { ...change, theirs };
}
