import { CopyButton } from "./Copy";
import classes from "./Snippet.module.css";

/** Code to copy, whole. */
export function Snippet({ code, label }: { code: string; label: string }) {
  return (
    <div className={classes.snippet}>
      <section className={classes.box} tabIndex={0} aria-label={label}>
        <pre className={classes.code}>{code}</pre>
      </section>
      <div className={classes.copy}>
        <CopyButton value={code} />
      </div>
    </div>
  );
}
