import { CopyButton } from "./Copy";
import classes from "./Snippet.module.css";

interface Props {
  code: string;
  label: string;
  /** In pixels; more of it is scrolled to. */
  maxHeight?: number;
}

/** Code to copy, whole. */
export function Snippet({ code, label, maxHeight }: Props) {
  return (
    <div className={classes.snippet}>
      <section className={classes.box} tabIndex={0} aria-label={label} style={{ maxHeight }}>
        <pre className={classes.code}>{code}</pre>
      </section>
      <div className={classes.copy}>
        <CopyButton value={code} />
      </div>
    </div>
  );
}
