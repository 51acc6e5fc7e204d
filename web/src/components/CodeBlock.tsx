import { CopyButton } from "./Copy";
import classes from "./CodeBlock.module.css";

interface Props {
  code: string;
  /** What it is, for those who do not see it. */
  label: string;
  maxHeight?: number;
}

/** Code or text as it is, in a box of its own that scrolls, to copy. */
export function CodeBlock({ code, label, maxHeight = 320 }: Props) {
  return (
    <div className={classes.box}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <pre className={classes.code} style={{ maxHeight }} tabIndex={0} aria-label={label} role="region">
        {code}
      </pre>
      <div className={classes.copy}>
        <CopyButton value={code} />
      </div>
    </div>
  );
}
