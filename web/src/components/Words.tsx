import { Code } from "@mantine/core";
import { Fragment } from "react";

/** A sentence of ours, in which what stands between backticks is a command. */
export function Words({ of }: { of: string }) {
  return (
    <>
      {of.split("`").map((part, index) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence stay where they are
        index % 2 === 1 ? <Code key={index}>{part}</Code> : <Fragment key={index}>{part}</Fragment>,
      )}
    </>
  );
}
