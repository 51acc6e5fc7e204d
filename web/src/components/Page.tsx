import { useDocumentTitle } from "@mantine/hooks";
import type { ReactNode } from "react";
import { text } from "../text";
import classes from "./Page.module.css";

interface Props {
  /** For the window's title, and as the heading if `heading` is left out. */
  title: string;
  heading?: ReactNode;
  /** Beside the heading: what can be done. */
  actions?: ReactNode;
  /** The heading is only heard, not seen. */
  bare?: boolean;
  children: ReactNode;
}

/** A page: its heading, what can be done, and what it shows. */
export function Page({ title, heading, actions, bare = false, children }: Props) {
  useDocumentTitle(`${title} · ${text.product}`);
  return (
    <div className={classes.page}>
      {bare ? (
        <h1 className="unseen">{title}</h1>
      ) : (
        <div className={classes.head}>
          <h1 className={classes.title}>{heading ?? title}</h1>
          {actions && <div className={classes.actions}>{actions}</div>}
        </div>
      )}
      {children}
    </div>
  );
}
