import { Fragment } from "react";
import { Link } from "react-router";
import classes from "./Trail.module.css";

interface Props {
  /** The pages above this one. */
  above: readonly { to: string; title: string }[];
  title: string;
}

/** Where a page lies: the pages above it, and what it shows. */
export function Trail({ above, title }: Props) {
  return (
    <>
      {above.map(({ to, title: one }) => (
        <Fragment key={to}>
          <Link to={to} className={classes.link}>
            {one}
          </Link>
          <span className={classes.arrow} aria-hidden>
            ›
          </span>
        </Fragment>
      ))}
      <bdi>{title}</bdi>
    </>
  );
}
