import type { ReactNode } from "react";
import { Link } from "react-router";
import classes from "./Crumbs.module.css";
import { Swatch } from "./Swatch";

interface Props {
  /** The list that the thing stands in. */
  to: string;
  list: string;
  name: string;
  /** The colour of its slots, if it has one. */
  colour?: number | null | undefined;
  /** Beside the name, such as its state. */
  children?: ReactNode;
}

/** The heading of a thing's page: the list it stands in, its name, its state. */
export function Crumbs({ to, list, name, colour, children }: Props) {
  return (
    <span className={classes.crumbs}>
      <Link to={to} className={classes.list}>
        {list}
      </Link>
      <span className="dim" aria-hidden>
        ›
      </span>
      {colour != null && <Swatch colour={colour} />}
      <bdi className="wrap">{name}</bdi>
      <span className={classes.beside}>{children}</span>
    </span>
  );
}
