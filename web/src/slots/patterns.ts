import { hueOf, patternOf, type Tokens } from "../theme/tokens";

/** What a layer is filled with: its hue, hatched or dotted in the colour of the surface. */
export function fillOf(
  context: CanvasRenderingContext2D,
  tokens: Tokens,
  colour: number | null,
): string | CanvasPattern {
  if (colour === null) return tokens.others;
  const hue = tokens.work[hueOf(colour)] ?? tokens.others;
  const pattern = patternOf(colour);
  if (pattern === "plain") return hue;
  const tile = document.createElement("canvas");
  tile.width = 8;
  tile.height = 8;
  const brush = tile.getContext("2d");
  if (brush === null) return hue;
  brush.fillStyle = hue;
  brush.fillRect(0, 0, 8, 8);
  brush.strokeStyle = tokens.surface;
  brush.fillStyle = tokens.surface;
  brush.lineWidth = 1.5;
  if (pattern === "hatched") {
    for (const shift of [-8, 0, 8]) {
      brush.beginPath();
      brush.moveTo(shift, 8);
      brush.lineTo(shift + 8, 0);
      brush.stroke();
    }
  } else {
    brush.beginPath();
    brush.arc(4, 4, 1.3, 0, 2 * Math.PI);
    brush.fill();
  }
  return context.createPattern(tile, "repeat") ?? hue;
}
