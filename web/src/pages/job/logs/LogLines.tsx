import { Button } from "@mantine/core";
import { IconArrowDown } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { text } from "../../../text";
import { LineText } from "./LineText";
import classes from "./Log.module.css";
import type { LogState } from "./useLog";

const words = text.job.logs;
const LINE = 18;
const NEAR = 60;

interface Props {
  state: LogState;
  wrap: boolean;
  /** The byte of the line that one looks for. */
  found: number | null;
  follows: boolean;
  /** Called when one scrolls away from the end, or back to it. */
  onFollow: (follows: boolean) => void;
  earlier: () => void;
  later: () => void;
}

/** Lines of a log: only those that are seen are drawn, and earlier ones come as one scrolls up. */
export function LogLines({ state, wrap, found, follows, onFollow, earlier, later }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const { partial, lines: whole } = state;
  const lines = useMemo(() => (partial === null ? whole : [...whole, partial]), [whole, partial]);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE,
    getItemKey: (index) => lines[index]?.offset ?? index,
    overscan: 20,
  });
  useKeptPlace(box, lines[0]?.offset, lines, virtual);
  const sought = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (found === null || sought.current === found) return;
    const index = lines.findIndex((line) => line.offset >= found);
    if (index < 0) return;
    sought.current = found;
    virtual.scrollToIndex(index, { align: "center" });
  }, [found, lines, virtual]);
  const count = lines.length;
  useEffect(() => {
    if (follows && count > 0) virtual.scrollToIndex(count - 1, { align: "end" });
  }, [follows, count, virtual]);
  const onScroll = () => {
    const element = box.current;
    if (element === null) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    setAtEnd(atEnd);
    if (element.scrollTop < 400) earlier();
    if (atEnd) later();
  };
  const wheel = (deltaY: number) => {
    if (deltaY < 0 && follows) onFollow(false);
  };
  return (
    <div className={classes.place}>
      <section
        ref={box}
        className={classes.box}
        data-wrap={wrap || undefined}
        tabIndex={0}
        aria-label={words.lines}
        onScroll={onScroll}
        onWheel={(event) => wheel(event.deltaY)}
        onTouchMove={() => follows && !isAtEnd && onFollow(false)}
        onKeyDown={(event) => ["ArrowUp", "PageUp", "Home"].includes(event.key) && follows && onFollow(false)}
      >
        {count === 0 && <div className={classes.nothing}>{words.empty}</div>}
        <ol className={classes.lines} style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const line = lines[item.index];
            if (line === undefined) return null;
            return (
              <li
                key={item.key}
                ref={wrap ? virtual.measureElement : undefined}
                data-index={item.index}
                className={classes.line}
                data-found={line.offset === found || undefined}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <LineText text={line.text} />
                {line.is_cut && <span className={classes.cut}> … {words.cut}</span>}
              </li>
            );
          })}
        </ol>
      </section>
      {!isAtEnd && (
        <Button
          className={classes.bottom}
          variant="default"
          leftSection={<IconArrowDown size={16} />}
          onClick={() => {
            virtual.scrollToIndex(count - 1, { align: "end" });
            onFollow(true);
          }}
        >
          {words.bottom}
        </Button>
      )}
    </div>
  );
}

/** Keep the lines where they are when earlier ones come before them. */
function useKeptPlace(
  box: { current: HTMLElement | null },
  first: number | undefined,
  lines: readonly { offset: number }[],
  virtual: { getOffsetForIndex: (index: number, align: "start") => readonly [number, unknown] | undefined },
): void {
  const before = useRef(first);
  useLayoutEffect(() => {
    const old = before.current;
    before.current = first;
    const element = box.current;
    if (element === null || old === undefined || first === undefined || first >= old) return;
    const added = lines.findIndex((line) => line.offset >= old);
    if (added > 0) element.scrollTop += virtual.getOffsetForIndex(added, "start")?.[0] ?? added * LINE;
  }, [box, first, lines, virtual]);
}
