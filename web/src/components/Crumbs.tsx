import { Fragment, type ReactNode } from "react";
import { Link } from "react-router";
import classes from "./Crumbs.module.css";
import { Swatch } from "./Swatch";

interface Props {
  /** The pages above this one, such as the list that the thing stands in. */
  above: readonly { to: string; title: string }[];
  name: string;
  /** The colour of its slots, if it has one. */
  colour?: number | null | undefined;
  /** Beside the name, such as its state. */
  children?: ReactNode;
}

/** The heading of a thing's page: the pages above it, its name, its state. */
export function Crumbs({ above, name, colour, children }: Props) {
  return (
    <span className={classes.crumbs}>
      {above.map(({ to, title }) => (
        <Fragment key={to}>
          <Link to={to} className={classes.list}>
            {title}
          </Link>
          <span className="dim" aria-hidden>
            ›
          </span>
        </Fragment>
      ))}
      {colour != null && <Swatch colour={colour} />}
      <bdi className="wrap">{name}</bdi>
      {children && <span className={classes.beside}>{children}</span>}
    </span>
  );
}
