import { useEffect, useRef, useState } from "react";

const REST_MS = 200;

/**
 * A text that is typed and kept elsewhere, such as in the address: shown at once, handed on when one rests. An address
 * changes a moment after it was asked to; a field that showed it would lose letters.
 */
export function useTyped(kept: string, keep: (value: string) => void): [string, (value: string) => void] {
  const [typed, setTyped] = useState(kept);
  const handedOn = useRef(kept);
  const call = useRef(keep);
  useEffect(() => {
    call.current = keep;
  });
  useEffect(() => {
    if (kept === handedOn.current) return;
    handedOn.current = kept;
    setTyped(kept);
  }, [kept]);
  useEffect(() => {
    if (typed === handedOn.current) return;
    const timer = window.setTimeout(() => {
      handedOn.current = typed;
      call.current(typed);
    }, REST_MS);
    return () => window.clearTimeout(timer);
  }, [typed]);
  return [typed, setTyped];
}
