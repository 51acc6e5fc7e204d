import type { ReactNode } from "react";
import classes from "./ShortTable.module.css";

export interface ShortColumn<T> {
  title: string;
  cell: (row: T) => ReactNode;
  numeric?: boolean;
  /** Stays in one line. */
  tight?: boolean;
  /** Holds what can be done with the row; its title is for those who do not see the table. */
  action?: boolean;
}

interface Props<T> {
  /** What the table lists. */
  label: string;
  columns: readonly ShortColumn<T>[];
  rows: readonly T[];
  rowId: (row: T) => string;
  /** Few columns and short: a table on a narrow screen, too. */
  slim?: boolean;
}

/** A table of some dozens of rows, all of them drawn, as high as each needs; on a narrow screen one block for each row. */
export function ShortTable<T>({ label, columns, rows, rowId, slim = false }: Props<T>) {
  return (
    <section className={classes.box} tabIndex={0} aria-label={label}>
      <table className={`${classes.table} ${slim ? "" : classes.blocks}`} aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" data-numeric={column.numeric || undefined}>
                {column.action ? <span className="unseen">{column.title}</span> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowId(row)}>
              {columns.map((column) => (
                <td
                  key={column.title}
                  data-label={column.title}
                  data-numeric={column.numeric || undefined}
                  data-tight={column.tight || undefined}
                  data-action={column.action || undefined}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
