/** Of two objectives: the trials that no other one beats. One beats another if it is as good in both and better in one. */

export interface Point {
  number: number;
  x: number;
  y: number;
}

/** The numbers of the trials that no other one beats; both are made small unless said otherwise. */
export function frontOf(points: readonly Point[], maximize: readonly [boolean, boolean]): Set<number> {
  const sign = maximize.map((large) => (large ? -1 : 1));
  const [first = 1, second = 1] = sign;
  const ranked = points
    .map((point) => ({ number: point.number, x: first * point.x, y: second * point.y }))
    .sort((a, b) => a.x - b.x || a.y - b.y);
  const front = new Set<number>();
  let best = Number.POSITIVE_INFINITY;
  let bestX = Number.NaN;
  for (const point of ranked) {
    if (point.y < best || (point.y === best && point.x === bestX)) {
      front.add(point.number);
      best = point.y;
      bestX = point.x;
    }
  }
  return front;
}
