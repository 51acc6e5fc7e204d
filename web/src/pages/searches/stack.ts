/** Layers on top of each other, as uPlot needs them: the sum of all first, then without the topmost, and so on. */

/** Columns from the sum of all layers down to the lowest layer alone. */
export function stacked(layers: readonly (readonly number[])[]): number[][] {
  const length = layers[0]?.length ?? 0;
  const sums: number[][] = [];
  let below = Array.from({ length }, () => 0);
  for (const layer of layers) {
    below = below.map((sum, index) => sum + (layer[index] ?? 0));
    sums.unshift(below);
  }
  return sums;
}
