import { memo } from "react";
import { piecesOf, type Style } from "./ansi";
import classes from "./Log.module.css";

/** A line of a log: its text with its colours, by itself whatever direction it is read in. */
export const LineText = memo(function LineText({ text }: { text: string }) {
  const pieces = piecesOf(text);
  if (pieces.length === 0) return <br />;
  return (
    <bdi>
      {pieces.map((piece, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other name, and never change places
        <span key={index} className={classOf(piece.style)} data-colour={piece.style.colour ?? undefined}>
          {piece.text}
        </span>
      ))}
    </bdi>
  );
});

function classOf(style: Style): string {
  const names = [
    style.bold && classes.bold,
    style.dim && classes.faint,
    style.italic && classes.italic,
    style.underline && classes.underline,
    style.struck && classes.struck,
    style.marked && classes.marked,
  ];
  return names.filter(Boolean).join(" ");
}
