import { type ReactNode, useId } from "react";
import classes from "./Panel.module.css";

interface Props {
  title: ReactNode;
  /** Beside the title: what can be done, or a number. */
  aside?: ReactNode;
  children: ReactNode;
  className?: string;
}

/** A part of a page with a title of its own: flat, with a border. */
export function Panel({ title, aside, children, className }: Props) {
  const id = useId();
  return (
    <section aria-labelledby={id} className={`${classes.panel} ${className ?? ""}`}>
      <header className={classes.head}>
        <h2 id={id} className={classes.title}>
          {title}
        </h2>
        {aside}
      </header>
      <div className={classes.body}>{children}</div>
    </section>
  );
}
