/**
 * A table of any length: only the rows that are seen are drawn, and the server is asked for them alone. Rows have one
 * height. Sorting, filtering and paging are the server's; what one sees and chose stands in the address of the page.
 */
import { useMediaQuery } from "@mantine/hooks";
import { IconArrowDown, IconArrowsSort, IconArrowUp } from "@tabler/icons-react";
import { type Range, useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type FocusEvent,
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type PointerEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
} from "react";
import { Link, useNavigate } from "react-router";
import { PREFIX } from "../api/place";
import { isTyping } from "../app/keys";
import { text } from "../text";
import classes from "./DataTable.module.css";
import { recycle, type Slot } from "./recycle";

export interface Column<T> {
  id: string;
  header: ReactNode;
  /** Its width in pixels, of those that others leave it if it grows. */
  size?: number;
  meta?: {
    /** Numbers stand right, in digits of one width. */
    numeric?: boolean;
    /** The word by which the server sorts by this column; it can be sorted by if there is one. */
    sort?: string;
    /** The column takes what is left of the width. */
    grow?: boolean;
  };
  /** Called for every row that comes into sight, so it uses no hooks of its own. */
  cell: (context: { row: { original: T } }) => ReactNode;
}

interface Selection<T> {
  ids: ReadonlySet<string>;
  change: (ids: ReadonlySet<string>) => void;
  /** Whether a row can be selected. */
  takes: (row: T) => boolean;
}

interface Props<T> {
  /** What the table lists, for those who do not see it. */
  label: string;
  /** Defined once, outside of any component: columns that are made anew draw every cell anew. */
  columns: readonly Column<T>[];
  /** Every row; those that have not come yet are undefined. */
  rows: readonly (T | undefined)[];
  rowId: (row: T) => string;
  /** Where a row leads. Its first cell is the link. */
  href?: (row: T) => string;
  /** A word of a column's `sort`, with `-` before it if the largest comes first. */
  sort?: string;
  onSort?: (sort: string) => void;
  /** Columns that are not shown, by id. */
  hidden?: readonly string[];
  selection?: Selection<T>;
  /** Called with the first and the last row that are looked at. */
  onRange?: (first: number, last: number) => void;
  /** How a row looks where there is no room for a table. */
  card?: (row: T) => ReactNode;
  /** The height that the table may take, in CSS. */
  maxHeight?: string;
  /** What is there if there are no rows. */
  empty?: ReactNode;
}

const ROW = 36;
const CARD = 84;
const CHECK = 40;
const SIZE = 150;
/** Rows that are drawn before they are seen: on both sides at rest, then ahead of and behind where one scrolls to. */
const NEAR = 8;
const AHEAD = 12;
const BEHIND = 2;

export function DataTable<T>(props: Props<T>) {
  const narrow = useMediaQuery("(max-width: 767px)", false, { getInitialValueInEffect: false });
  if (props.rows.length === 0 && props.empty) return <>{props.empty}</>;
  return narrow && props.card ? <Cards {...props} card={props.card} /> : <Wide {...props} />;
}

function useRows<T>({ rows, onRange }: Props<T>, height: number) {
  const box = useRef<HTMLDivElement>(null);
  const way = useRef<"forward" | "backward" | null>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    rangeExtractor: useCallback(({ startIndex, endIndex, count }: Range) => {
      const [before, after] =
        way.current === null ? [NEAR, NEAR] : way.current === "forward" ? [BEHIND, AHEAD] : [AHEAD, BEHIND];
      const first = Math.max(0, startIndex - before);
      return Array.from({ length: Math.min(count, endIndex + after + 1) - first }, (_, place) => first + place);
    }, []),
    onChange: (instance) => {
      way.current = instance.scrollDirection;
    },
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => onRange?.(first, last), [onRange, first, last]);
  return { box, virtual, items };
}

function Wide<T>(props: Props<T>) {
  const { rows, rowId, href, selection, maxHeight = "calc(100dvh - 240px)" } = props;
  const { box, virtual, items } = useRows(props, ROW);
  const columns = useShown(props);
  const widths = useMemo(() => widthsOf(columns), [columns]);
  const least = columns.reduce((sum, { size = SIZE }) => sum + size, selection ? CHECK : 0);
  const focus = useFocus(rows);
  const indexes = items.map((item) => item.index);
  const known = indexes.flatMap((index) => rows[index] ?? []);
  const slots = useSlots(focus.with(indexes), !virtual.isScrolling);
  const keys = useRowKeys(box, rows.length, (index) => virtual.scrollToIndex(index));
  const choose = useChoose(selection);
  const sure = useSure(rows, rowId);
  return (
    <section
      ref={box}
      className={classes.box}
      style={{ maxHeight }}
      tabIndex={0}
      aria-label={props.label}
      {...sure}
      onKeyDown={keys}
      onClick={useLinks()}
      onFocus={focus.enter}
      onBlur={focus.leave}
    >
      <table
        className={classes.table}
        style={{ minWidth: least }}
        aria-label={props.label}
        aria-rowcount={rows.length + 1}
      >
        <thead>
          <tr aria-rowindex={1}>
            {selection && (
              <th scope="col" className={classes.pick}>
                <SelectAll known={known.filter(selection.takes).map(rowId)} selection={selection} />
              </th>
            )}
            <Headings columns={columns} widths={widths} sort={props.sort} onSort={props.onSort} />
          </tr>
        </thead>
        <tbody style={{ height: rows.length * ROW }}>
          {slots.map(({ key, index }) => {
            const row = rows[index] ?? focus.rowAt(index);
            const id = row === undefined ? "" : rowId(row);
            return (
              <Line
                key={key}
                row={row}
                id={id}
                index={index}
                isLast={index === rows.length - 1}
                columns={columns}
                widths={widths}
                {...(href && { href })}
                {...(selection && {
                  chosen: selection.ids.has(id),
                  isFree: row !== undefined && selection.takes(row),
                  onChoose: choose,
                })}
              />
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

/** The columns that are shown, the same as long as they are. */
function useShown<T>({ columns, hidden }: Props<T>): readonly Column<T>[] {
  return useMemo(() => columns.filter((column) => !hidden?.includes(column.id)), [columns, hidden]);
}

/** Those that grow share what the others leave; if none does, all of them share it by their widths. */
function widthsOf<T>(columns: readonly Column<T>[]): readonly CSSProperties[] {
  const grows = columns.some((column) => column.meta?.grow);
  return columns.map(({ meta, size = SIZE }) => ({
    flex: meta?.grow ? "1 1 0" : grows ? `0 0 ${size}px` : `${size} 1 ${size}px`,
  }));
}

/** The elements of rows. They are in the order of rows, so that Tab goes through them, as soon as nothing scrolls. */
function useSlots(indexes: readonly number[], inOrder: boolean): readonly Slot[] {
  const slots = useRef<readonly Slot[]>([]);
  slots.current = recycle(slots.current, indexes, inOrder);
  return slots.current;
}

/** The row that has the focus: it stays where it is, with what it shows, when it scrolls out of sight. */
function useFocus<T>(rows: readonly (T | undefined)[]) {
  const focused = useRef<{ index: number; row: T | undefined } | null>(null);
  const has = focused.current;
  if (has !== null) has.row = rows[has.index] ?? has.row;
  return {
    enter: (event: FocusEvent<HTMLElement>) => {
      const index = indexOf(event.target);
      focused.current = index === -1 ? null : { index, row: rows[index] };
    },
    leave: (event: FocusEvent<HTMLElement>) => {
      if (event.target !== document.activeElement) focused.current = null; // it still is if the window lost the focus
    },
    with: (indexes: readonly number[]): readonly number[] =>
      has === null || has.index >= rows.length || indexes.includes(has.index)
        ? indexes
        : [...indexes, has.index].sort((one, other) => one - other),
    rowAt: (index: number) => (has?.index === index ? has.row : undefined),
  };
}

/** The row of the table that an element is in; -1: of none. */
function indexOf(element: Element): number {
  return Number(element.closest<HTMLElement>("[data-row]")?.dataset.row ?? -1);
}

/** A row that has become another one between the press of a button and its release is not clicked at. */
function useSure<T>(rows: readonly (T | undefined)[], rowId: (row: T) => string) {
  const pressed = useRef<string | null>(null);
  const idAt = (event: MouseEvent<HTMLElement>) => {
    const row = rows[indexOf(event.target as Element)];
    return row === undefined ? null : rowId(row);
  };
  return {
    onPointerDownCapture: (event: PointerEvent<HTMLElement>) => {
      pressed.current = idAt(event);
    },
    onClickCapture: (event: MouseEvent<HTMLElement>) => {
      if (event.detail === 0 || idAt(event) === pressed.current) return; // a key's click has no press before it
      event.preventDefault();
      event.stopPropagation();
    },
  };
}

/** What follows the links of all rows: a link of the router's in each would cost more than the row itself. */
function useLinks() {
  const navigate = useNavigate();
  return (event: MouseEvent<HTMLElement>) => {
    const to = (event.target as Element).closest<HTMLElement>("a[data-to]")?.dataset.to;
    if (to === undefined || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
}

interface LineProps<T> {
  /** Undefined: it has not come yet. */
  row: T | undefined;
  id: string;
  index: number;
  isLast: boolean;
  columns: readonly Column<T>[];
  widths: readonly CSSProperties[];
  href?: (row: T) => string;
  /** Undefined: nothing can be chosen here. */
  chosen?: boolean;
  /** Whether this row can be chosen. */
  isFree?: boolean;
  onChoose?: (id: string, chosen: boolean) => void;
}

/** A row that is drawn again only when something of its own has changed: scrolling draws those that come into sight. */
const Line = memo(EveryLine) as typeof EveryLine;

function EveryLine<T>({ row, id, index, isLast, columns, widths, href, chosen, isFree, onChoose }: LineProps<T>) {
  const context = row === undefined ? undefined : { row: { original: row } };
  const to = row === undefined ? undefined : href?.(row);
  return (
    <tr
      className={classes.row}
      style={{ top: index * ROW }}
      data-row={context && index}
      data-last={isLast || undefined}
      aria-rowindex={index + 2}
      aria-selected={chosen}
    >
      {onChoose && (
        <td className={classes.pick}>
          {isFree && (
            <input
              type="checkbox"
              className={classes.check}
              aria-label={text.table.select(id)}
              checked={chosen ?? false}
              onChange={(event) => onChoose(id, event.currentTarget.checked)}
            />
          )}
        </td>
      )}
      {columns.map((column, place) => (
        <td key={column.id} className={column.meta?.numeric ? "num" : "cut"} style={widths[place]}>
          {place === 0 && to !== undefined ? (
            <a href={`${PREFIX}${to}`} data-to={to} className={classes.link}>
              {context && column.cell(context)}
            </a>
          ) : (
            context && column.cell(context)
          )}
        </td>
      ))}
    </tr>
  );
}

/** What selects one row more or less, the same as long as the table is there. */
function useChoose<T>(selection: Selection<T> | undefined) {
  const newest = useRef(selection);
  newest.current = selection;
  return useCallback((id: string, chosen: boolean) => {
    newest.current?.change(withId(newest.current.ids, id, chosen));
  }, []);
}

interface HeadingsProps<T> {
  columns: readonly Column<T>[];
  widths: readonly CSSProperties[];
  sort: string | undefined;
  onSort: ((sort: string) => void) | undefined;
}

/** The heads of the columns, which scrolling does not draw again. */
const Headings = memo(EveryHeading) as typeof EveryHeading;

function EveryHeading<T>({ columns, widths, sort, onSort }: HeadingsProps<T>) {
  return (
    <>
      {columns.map(({ id, header, meta }, place) => (
        <Heading
          key={id}
          style={widths[place]}
          numeric={meta?.numeric ?? false}
          word={meta?.sort}
          sort={sort}
          onSort={onSort}
        >
          {header}
        </Heading>
      ))}
    </>
  );
}

interface HeadingProps {
  style: CSSProperties | undefined;
  numeric: boolean;
  word: string | undefined;
  sort: string | undefined;
  onSort: ((sort: string) => void) | undefined;
  children: ReactNode;
}

function Heading({ style, numeric, word, sort, onSort, children }: HeadingProps) {
  const sorted = word === undefined ? null : sort === word ? "ascending" : sort === `-${word}` ? "descending" : "none";
  const className = numeric ? "num" : "cut";
  if (word === undefined || onSort === undefined) {
    return (
      <th scope="col" className={className} style={style}>
        {children}
      </th>
    );
  }
  const Arrow = sorted === "ascending" ? IconArrowUp : sorted === "descending" ? IconArrowDown : IconArrowsSort;
  return (
    <th scope="col" className={className} style={style} aria-sort={sorted ?? undefined}>
      <button
        type="button"
        className={classes.sort}
        onClick={() => onSort(sorted === "descending" ? word : `-${word}`)}
      >
        {children}
        <Arrow size={13} aria-hidden />
      </button>
    </th>
  );
}

interface SelectAllProps {
  known: readonly string[];
  selection: Pick<Selection<never>, "ids" | "change">;
}

function SelectAll({ known, selection }: SelectAllProps) {
  if (known.length === 0) return null;
  const chosen = known.filter((id) => selection.ids.has(id)).length;
  return (
    <input
      type="checkbox"
      className={classes.check}
      ref={(box) => {
        if (box !== null) box.indeterminate = chosen > 0 && chosen < known.length;
      }}
      aria-label={text.table.selectAll}
      checked={chosen === known.length}
      onChange={(event) =>
        selection.change(event.currentTarget.checked ? new Set([...selection.ids, ...known]) : new Set())
      }
    />
  );
}

function withId(ids: ReadonlySet<string>, id: string, chosen: boolean): ReadonlySet<string> {
  const next = new Set(ids);
  if (chosen) next.add(id);
  else next.delete(id);
  return next;
}

const PATIENCE = 20;

/** Gives the focus to what is drawn in one of the next frames. */
function giveFocus(box: { current: HTMLElement | null }, wanted: string, frames = PATIENCE) {
  window.requestAnimationFrame(() => {
    const found = box.current?.querySelector<HTMLElement>(wanted);
    if (found) found.focus();
    else if (frames > 0) giveFocus(box, wanted, frames - 1);
  });
}

/** J and K go from row to row, X selects one, Enter follows its link. */
function useRowKeys(box: { current: HTMLElement | null }, count: number, show: (index: number) => void) {
  return (event: KeyboardEvent<HTMLElement>) => {
    if (isTyping(event.nativeEvent)) return;
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-row]");
    const key = event.key.toLowerCase();
    if (key === "j" || key === "k") {
      const next = Math.min(count - 1, Math.max(0, indexOf(event.target as Element) + (key === "j" ? 1 : -1)));
      show(next);
      giveFocus(box, `[data-row="${next}"] a, [data-row="${next}"] button`);
      event.preventDefault();
    } else if (key === "x") {
      row?.querySelector<HTMLInputElement>("input[type=checkbox]")?.click();
    } else if (key === "enter" && !(event.target instanceof HTMLAnchorElement)) {
      row?.querySelector("a")?.click();
    }
  };
}

function Cards<T>(props: Props<T> & { card: (row: T) => ReactNode }) {
  const { rows, rowId, href, card } = props;
  const { box, virtual, items } = useRows(props, CARD);
  return (
    <section ref={box} className={classes.cards} tabIndex={0} aria-label={props.label}>
      <ul style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index];
          return (
            <li
              key={row === undefined ? item.key : rowId(row)}
              ref={virtual.measureElement}
              data-index={item.index}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {row !== undefined && (
                <div className={classes.card}>
                  {href ? (
                    <Link to={href(row)} className={classes.cardLink}>
                      {card(row)}
                    </Link>
                  ) : (
                    card(row)
                  )}
                </div>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
