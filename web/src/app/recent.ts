/** The pages that were looked at last, newest first: kept in the memory of this page alone, and never written anywhere. */

export interface Visited {
  path: string;
  title: string;
}

const MOST = 20;

/** The pages with one more in front; a page stands there once. */
export function withVisit(before: readonly Visited[], visit: Visited): readonly Visited[] {
  return [visit, ...before.filter((other) => other.path !== visit.path)].slice(0, MOST);
}

let visited: readonly Visited[] = [];

/** Remember that a page was looked at. */
export function remember(visit: Visited): void {
  visited = withVisit(visited, visit);
}

/** The pages that were looked at last, without the one that is looked at now. */
export function recentPages(but: string): readonly Visited[] {
  return visited.filter((visit) => visit.path !== but);
}

export function forgetPages(): void {
  visited = [];
}
