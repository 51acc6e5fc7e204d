/**
 * A table of any length: only the rows that are seen are drawn, and the server is asked for them alone. Rows have one
 * height. Sorting, filtering and paging are the server's; what one sees and chose stands in the address of the page.
 */
import { useMediaQuery } from "@mantine/hooks";
import { IconArrowDown, IconArrowsSort, IconArrowUp } from "@tabler/icons-react";
import {
  type ColumnDef,
  flexRender,
  getCoreRowModel,
  type Row,
  type RowData,
  useReactTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, type ReactNode, useCallback, useEffect, useMemo, useRef } from "react";
import { Link, useNavigate } from "react-router";
import { isTyping } from "../app/keys";
import { text } from "../text";
import classes from "./DataTable.module.css";

declare module "@tanstack/react-table" {
  interface ColumnMeta<TData extends RowData, TValue> {
    /** Numbers stand right, in digits of one width. */
    numeric?: boolean;
    /** The word by which the server sorts by this column; it can be sorted by if there is one. */
    sort?: string;
    /** The column takes what is left of the width. */
    grow?: boolean;
  }
}

export type Column<T> = ColumnDef<T, unknown>;

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

export function DataTable<T>(props: Props<T>) {
  const narrow = useMediaQuery("(max-width: 767px)", false, { getInitialValueInEffect: false });
  if (props.rows.length === 0 && props.empty) return <>{props.empty}</>;
  return narrow && props.card ? <Cards {...props} card={props.card} /> : <Wide {...props} />;
}

function useRows<T>({ rows, onRange }: Props<T>, height: number) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => onRange?.(first, last), [onRange, first, last]);
  return {
    box,
    virtual,
    items,
    before: items[0]?.start ?? 0,
    after: virtual.getTotalSize() - (items.at(-1)?.end ?? 0),
  };
}

function Wide<T>(props: Props<T>) {
  const { columns, rows, rowId, href, selection, hidden, maxHeight = "calc(100dvh - 240px)" } = props;
  const { box, virtual, items, before, after } = useRows(props, ROW);
  const seen = items.map((item) => rows[item.index]);
  const known = seen.filter((row): row is T => row !== undefined);
  const visibility = useMemo(() => Object.fromEntries((hidden ?? []).map((id) => [id, false])), [hidden]);
  const table = useReactTable({
    data: known,
    columns: columns as ColumnDef<T, unknown>[],
    getRowId: (row) => rowId(row),
    getCoreRowModel: getCoreRowModel(),
    manualSorting: true,
    manualPagination: true,
    state: { columnVisibility: visibility },
  });
  const modelOf = new Map(table.getRowModel().rows.map((row) => [row.id, row]));
  const keys = useRowKeys(box, rows.length, (index) => virtual.scrollToIndex(index));
  const choose = useChoose(selection);
  const leaves = table.getVisibleLeafColumns();
  const shape = leaves.map((column) => column.id).join();
  const span = leaves.length + (selection ? 1 : 0); // more would be columns of their own, and take the width of others
  const width = leaves.reduce((sum, column) => sum + column.getSize(), selection ? 40 : 0);
  return (
    <section
      ref={box}
      className={classes.box}
      style={{ maxHeight }}
      tabIndex={0}
      aria-label={props.label}
      onKeyDown={keys}
    >
      <table
        className={classes.table}
        style={{ minWidth: width }}
        aria-label={props.label}
        aria-rowcount={rows.length + 1}
      >
        <colgroup>
          {selection && <col style={{ width: 40 }} />}
          {leaves.map((column) => (
            <col key={column.id} style={{ width: column.columnDef.meta?.grow ? undefined : column.getSize() }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {selection && (
              <th scope="col">
                <SelectAll known={known.filter(selection.takes).map(rowId)} selection={selection} />
              </th>
            )}
            {table.getFlatHeaders().map((header) => (
              <Heading
                key={header.id}
                numeric={header.column.columnDef.meta?.numeric ?? false}
                word={header.column.columnDef.meta?.sort}
                sort={props.sort}
                onSort={props.onSort}
              >
                {flexRender(header.column.columnDef.header, header.getContext())}
              </Heading>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Gap span={span} height={before} />}
          {items.map((item) => {
            const row = rows[item.index];
            const model = row === undefined ? undefined : modelOf.get(rowId(row));
            if (row === undefined || model === undefined)
              return <Gap key={item.key} span={span} height={ROW} line={item.index + 2} />;
            const id = rowId(row);
            return (
              <Line
                key={id}
                model={model}
                index={item.index}
                columns={columns}
                shape={shape}
                {...(href && { href })}
                {...(selection && { chosen: selection.ids.has(id), isFree: selection.takes(row), onChoose: choose })}
              />
            );
          })}
          {after > 0 && <Gap span={span} height={after} />}
        </tbody>
      </table>
    </section>
  );
}

interface LineProps<T> {
  model: Row<T>;
  index: number;
  columns: readonly Column<T>[];
  /** Which of the columns are shown. */
  shape: string;
  href?: (row: T) => string;
  /** Undefined: nothing can be chosen here. */
  chosen?: boolean;
  /** Whether this row can be chosen. */
  isFree?: boolean;
  onChoose?: (id: string, chosen: boolean) => void;
}

/** A row that is drawn again only when something of its own has changed: scrolling draws those that come into sight. */
const Line = memo(EveryLine, isSameLine) as typeof EveryLine;

function isSameLine<T>(one: LineProps<T>, other: LineProps<T>): boolean {
  return (
    one.model.original === other.model.original &&
    one.model.id === other.model.id &&
    one.index === other.index &&
    one.columns === other.columns &&
    one.shape === other.shape &&
    one.href === other.href &&
    one.chosen === other.chosen &&
    one.isFree === other.isFree &&
    one.onChoose === other.onChoose
  );
}

function EveryLine<T>({ model, index, href, chosen, isFree, onChoose }: LineProps<T>) {
  const { id, original } = model;
  return (
    <tr data-row={index} aria-rowindex={index + 2} aria-selected={chosen}>
      {onChoose && (
        <td>
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
      {model.getVisibleCells().map((cell, place) => (
        <td key={cell.id} className={cell.column.columnDef.meta?.numeric ? "num" : "cut"}>
          {place === 0 && href ? (
            <Link to={href(original)} className={classes.link}>
              {flexRender(cell.column.columnDef.cell, cell.getContext())}
            </Link>
          ) : (
            flexRender(cell.column.columnDef.cell, cell.getContext())
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

function Gap({ span, height, line }: { span: number; height: number; line?: number }) {
  return (
    <tr aria-rowindex={line} aria-hidden={line === undefined}>
      <td colSpan={span} style={{ height, padding: 0, border: 0 }} />
    </tr>
  );
}

interface HeadingProps {
  numeric: boolean;
  word: string | undefined;
  sort: string | undefined;
  onSort: ((sort: string) => void) | undefined;
  children: ReactNode;
}

function Heading({ numeric, word, sort, onSort, children }: HeadingProps) {
  const sorted = word === undefined ? null : sort === word ? "ascending" : sort === `-${word}` ? "descending" : "none";
  const className = numeric ? "num" : "cut";
  if (word === undefined || onSort === undefined) {
    return (
      <th scope="col" className={className}>
        {children}
      </th>
    );
  }
  const Arrow = sorted === "ascending" ? IconArrowUp : sorted === "descending" ? IconArrowDown : IconArrowsSort;
  return (
    <th scope="col" className={className} aria-sort={sorted ?? undefined}>
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

/** J and K go from row to row, X selects one, Enter follows its link. */
function useRowKeys(box: { current: HTMLElement | null }, count: number, show: (index: number) => void) {
  const navigate = useNavigate();
  return (event: KeyboardEvent<HTMLElement>) => {
    if (isTyping(event.nativeEvent)) return;
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-row]");
    const at = row === null ? -1 : Number(row.dataset.row);
    const key = event.key.toLowerCase();
    if (key === "j" || key === "k") {
      const next = Math.min(count - 1, Math.max(0, at + (key === "j" ? 1 : -1)));
      show(next);
      window.requestAnimationFrame(() => {
        box.current?.querySelector<HTMLElement>(`[data-row="${next}"] a, [data-row="${next}"] button`)?.focus();
      });
      event.preventDefault();
    } else if (key === "x") {
      row?.querySelector<HTMLInputElement>("input[type=checkbox]")?.click();
    } else if (key === "enter" && row !== null && !(event.target instanceof HTMLAnchorElement)) {
      const href = row.querySelector("a")?.getAttribute("href");
      if (href) navigate(href);
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
