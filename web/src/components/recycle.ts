/** Where a row of a long list is drawn: elements that are known by their key, and the row that they show. */
export interface Slot {
  readonly key: number;
  readonly index: number;
}

/**
 * Lets rows that come into sight take the elements of rows that went: to change a text is cheaper than to make a row.
 *
 * @param before the slots in the order of their elements
 * @param indexes the rows that are to be shown, in their order
 * @param inOrder whether elements are moved into the order of rows; otherwise each stays where it is
 *
 * @example rows 0 to 2 become 1 to 3: the elements of row 0 show row 3
 *   recycle([{key: 0, index: 0}, {key: 1, index: 1}, {key: 2, index: 2}], [1, 2, 3], false)
 *   // [{key: 0, index: 3}, {key: 1, index: 1}, {key: 2, index: 2}]
 */
export function recycle(before: readonly Slot[], indexes: readonly number[], inOrder: boolean): readonly Slot[] {
  const wanted = new Set(indexes);
  const there = new Set(before.map((slot) => slot.index));
  const coming = indexes.filter((index) => !there.has(index));
  const after: Slot[] = [];
  for (const slot of before) {
    if (wanted.has(slot.index)) {
      after.push(slot);
      continue;
    }
    const index = coming.shift();
    if (index !== undefined) after.push({ key: slot.key, index });
  }
  const keys = new Set(after.map((slot) => slot.key));
  for (let key = 0; coming.length > 0; key += 1) {
    if (!keys.has(key)) after.push({ key, index: coming.shift() ?? 0 });
  }
  return inOrder ? after.sort((one, other) => one.index - other.index) : after;
}
