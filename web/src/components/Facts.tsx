import type { ReactNode } from "react";
import classes from "./Facts.module.css";

export interface Fact {
  label: string;
  value: ReactNode;
}

/** What is so, one line for each: a word, and what it is. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className={classes.facts}>
      {facts.map((fact) => (
        <div key={fact.label}>
          <dt>{fact.label}</dt>
          <dd className="wrap">{fact.value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Numbers of a page, beside each other; the first is what one came for, and the largest. */
export function Figures({ figures }: { figures: readonly Fact[] }) {
  return (
    <dl className={classes.figures}>
      {figures.map((figure) => (
        <div key={figure.label}>
          <dt>{figure.label}</dt>
          <dd>{figure.value}</dd>
        </div>
      ))}
    </dl>
  );
}
