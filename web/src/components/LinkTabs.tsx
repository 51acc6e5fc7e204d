import { NavLink } from "react-router";
import classes from "./LinkTabs.module.css";

export interface LinkTab {
  to: string;
  title: string;
  /** How many there are, if that is known. */
  count?: number | null;
  /** Only for this very address, not for those below it. */
  exact?: boolean;
}

/** Parts of a page, each with an address of its own. */
export function LinkTabs({ label, tabs }: { label: string; tabs: readonly LinkTab[] }) {
  return (
    <nav aria-label={label} className={classes.tabs}>
      {tabs.map((tab) => (
        <NavLink key={tab.to} to={tab.to} end={tab.exact} className={classes.tab}>
          {tab.title}
          {tab.count != null && <span className={classes.count}>{tab.count}</span>}
        </NavLink>
      ))}
    </nav>
  );
}
