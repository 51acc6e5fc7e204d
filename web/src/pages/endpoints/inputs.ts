/** What a model said of its inputs, if it said it in the form of the Open Inference Protocol; and requests made of it. */

export interface Input {
  name: string;
  datatype: string;
  shape: readonly number[];
}

/** The inputs in a model's metadata. It comes from people's code and may be anything: what is not of the form is left out. */
export function inputsOf(metadata: Readonly<Record<string, unknown>>): Input[] {
  const given = metadata.inputs;
  if (!Array.isArray(given)) return [];
  return given.flatMap((one: unknown) => {
    if (typeof one !== "object" || one === null) return [];
    const { name, datatype, shape } = one as Record<string, unknown>;
    const isShape = Array.isArray(shape) && shape.length <= 8 && shape.every((size) => Number.isInteger(size));
    if (typeof name !== "string" || typeof datatype !== "string" || !isShape) return [];
    return [{ name: name.slice(0, 200), datatype, shape: shape as number[] }];
  });
}

const MAX_VALUES = 1024;

/** A request of zeros, as an example; null if the model does not say what it takes. */
export function exampleRequest(inputs: readonly Input[]): object | null {
  if (inputs.length === 0) return null;
  return { inputs: inputs.map(exampleOf) };
}

function exampleOf(input: Input): object {
  const shape = input.shape.map((size) => Math.max(1, size));
  const size = shape.reduce((total, one) => total * one, 1);
  const zero = input.datatype === "BYTES" ? "" : input.datatype === "BOOL" ? false : 0;
  const data = Array.from({ length: Math.min(size, MAX_VALUES) }, () => zero);
  return { name: input.name, shape, datatype: input.datatype, data };
}

/** How a picture is laid out for an input. */
export interface Layout {
  width: number;
  height: number;
  channels: 1 | 3;
  order: "chw" | "hwc";
  /** Whether there is a dimension before, for several pictures. */
  batched: boolean;
}

/** The layout that fits an input; a size that it leaves open is `open` pixels. */
export function layoutOf(input: Input | undefined, open = 28): Layout {
  const shape = [...(input?.shape ?? [])];
  const batched = shape.length === 4 || (shape.length === 3 && !isChannels(shape[0]) && !isChannels(shape[2]));
  const rest = batched ? shape.slice(1) : shape;
  const pixels = (size: number | undefined) => (size === undefined || size < 1 ? open : Math.min(size, 2048));
  if (rest.length === 3 && isChannels(rest[2]) && !isChannels(rest[0])) {
    return { height: pixels(rest[0]), width: pixels(rest[1]), channels: rest[2] === 3 ? 3 : 1, order: "hwc", batched };
  }
  if (rest.length === 3) {
    return { height: pixels(rest[1]), width: pixels(rest[2]), channels: rest[0] === 3 ? 3 : 1, order: "chw", batched };
  }
  if (rest.length === 2) return { height: pixels(rest[0]), width: pixels(rest[1]), channels: 1, order: "hwc", batched };
  const side = rest.length === 1 && rest[0] !== undefined && rest[0] > 0 ? Math.sqrt(rest[0]) : open;
  const whole = Number.isInteger(side) ? side : open;
  return { height: whole, width: whole, channels: 1, order: "chw", batched };
}

function isChannels(size: number | undefined): boolean {
  return size === 1 || size === 3;
}

/** The shape of a picture of this layout, for an input: open sizes become those of the picture. */
export function shapeOf(input: Input | undefined, layout: Layout): number[] {
  const { width, height, channels, order, batched } = layout;
  const rank = input?.shape.length ?? 0;
  const inner = rank - Number(batched);
  if (rank > 0 && inner === 2) return [...(batched ? [1] : []), height, width];
  if (rank > 0 && inner === 1) return [...(batched ? [1] : []), height * width * channels];
  const three = order === "chw" ? [channels, height, width] : [height, width, channels];
  return [...(batched ? [1] : []), ...three];
}

export interface Look {
  scale: "unit" | "byte";
  invert: boolean;
}

/** The numbers of a picture, from its pixels as a canvas has them (red, green, blue, opacity), in the layout's order. */
export function numbersOf(rgba: Uint8ClampedArray, layout: Layout, look: Look): number[] {
  const { width, height, channels, order } = layout;
  const size = width * height;
  const numbers = new Array<number>(size * channels);
  for (let pixel = 0; pixel < size; pixel += 1) {
    const opacity = (rgba[4 * pixel + 3] ?? 255) / 255;
    const [red, green, blue] = [0, 1, 2].map((part) => (rgba[4 * pixel + part] ?? 0) * opacity + 255 * (1 - opacity));
    const parts =
      channels === 3
        ? [red ?? 0, green ?? 0, blue ?? 0]
        : [0.299 * (red ?? 0) + 0.587 * (green ?? 0) + 0.114 * (blue ?? 0)];
    parts.forEach((value, channel) => {
      const turned = look.invert ? 255 - value : value;
      const number = look.scale === "unit" ? Math.round((turned / 255) * 1e4) / 1e4 : Math.round(turned);
      numbers[order === "chw" ? channel * size + pixel : pixel * channels + channel] = number;
    });
  }
  return numbers;
}

/** What an answer of the protocol says: outputs with their numbers; null if it is none. */
export function outputsOf(answer: string): { name: string; data: readonly unknown[] }[] | null {
  try {
    const whole = JSON.parse(answer) as { outputs?: unknown };
    if (!Array.isArray(whole.outputs)) return null;
    return whole.outputs.flatMap((one: unknown) => {
      const { name, data } = (one ?? {}) as Record<string, unknown>;
      return typeof name === "string" && Array.isArray(data) ? [{ name, data: data.flat(8) as unknown[] }] : [];
    });
  } catch {
    return null;
  }
}

/** The largest numbers of an output, each with its place; if they are logits, as shares. */
export function largest(data: readonly unknown[], most = 5): { index: number; value: number }[] {
  const numbers = data.filter((one): one is number => typeof one === "number");
  if (numbers.length !== data.length || numbers.length < 2 || numbers.length > 100_000) return [];
  return numbers
    .map((value, index) => ({ index, value }))
    .sort((a, b) => b.value - a.value || a.index - b.index)
    .slice(0, most);
}
