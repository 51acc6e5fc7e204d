import { useDocumentTitle } from "@mantine/hooks";
import { type ReactNode, useEffect } from "react";
import { useLocation } from "react-router";
import { remember } from "../app/recent";
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
  /** Not among the pages that one looked at. */
  passing?: boolean;
  children: ReactNode;
}

/** A page: its heading, what can be done, and what it shows. */
export function Page({ title, heading, actions, bare = false, passing = false, children }: Props) {
  const { pathname } = useLocation();
  useEffect(() => {
    if (!passing) remember({ path: pathname, title });
  }, [passing, pathname, title]);
  useDocumentTitle(`${title} · ${text.product}`);
  return (
    <div className={classes.page}>
      {bare ? (
        <h1 className="unseen">{title}</h1>
      ) : (
        <div className={classes.head}>
          <h1 className={classes.title} data-parts={heading !== undefined || undefined}>
            {heading ?? title}
          </h1>
          {actions && <div className={classes.actions}>{actions}</div>}
        </div>
      )}
      {children}
    </div>
  );
}
