import { Button, NumberInput, Select, Stack, Switch, Text } from "@mantine/core";
import { type DragEvent, useCallback, useEffect, useRef, useState } from "react";
import { text } from "../../text";
import classes from "./Endpoints.module.css";
import { type Input, type Layout, type Look, layoutOf, numbersOf, shapeOf } from "./inputs";

const words = text.endpoints.test;

interface Props {
  inputs: readonly Input[];
  /** Called with the request that the picture makes, as JSON; null while there is none. */
  onRequest: (request: string | null) => void;
}

/** A picture that becomes the numbers of an input: its size, order and values as the model wants them. */
export function PictureField({ inputs, onRequest }: Props) {
  const input = inputs[0];
  const canvas = useRef<HTMLCanvasElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const [layout, setLayout] = useState<Layout>(() => layoutOf(input));
  const [look, setLook] = useState<Look>({ scale: input?.datatype === "UINT8" ? "byte" : "unit", invert: false });
  const [picture, setPicture] = useState<ImageBitmap | null>(null);
  const [over, setOver] = useState(false);
  const [broken, setBroken] = useState(false);
  const shape = shapeOf(input, layout);

  const draw = useCallback(() => {
    const context = canvas.current?.getContext("2d", { willReadFrequently: true });
    if (picture === null || !context) return onRequest(null);
    context.clearRect(0, 0, layout.width, layout.height);
    context.drawImage(picture, 0, 0, layout.width, layout.height);
    const { data } = context.getImageData(0, 0, layout.width, layout.height);
    const named = { name: input?.name ?? "x", datatype: input?.datatype ?? "FP32", shape: shapeOf(input, layout) };
    onRequest(JSON.stringify({ inputs: [{ ...named, data: numbersOf(data, layout, look) }] }));
  }, [picture, layout, look, input, onRequest]);
  useEffect(draw, [draw]);

  const take = async (chosen: File | undefined) => {
    if (chosen === undefined) return;
    try {
      setPicture(await createImageBitmap(chosen));
      setBroken(false);
    } catch {
      setPicture(null);
      setBroken(true);
    }
  };
  const size = (value: string | number, fallback: number) =>
    typeof value === "number" && value >= 1 ? Math.min(2048, Math.round(value)) : fallback;
  return (
    <Stack gap="md">
      <div className={classes.picture}>
        {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same */}
        <div
          className={classes.drop}
          data-over={over}
          onDragOver={(event: DragEvent) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={(event: DragEvent) => {
            event.preventDefault();
            setOver(false);
            void take(event.dataTransfer.files[0]);
          }}
        >
          <span>{broken ? words.notPicture : words.dropPicture}</span>
          <input
            ref={file}
            type="file"
            accept="image/*"
            hidden
            aria-label={words.choosePicture}
            onChange={(event) => {
              void take(event.currentTarget.files?.[0]);
              event.currentTarget.value = "";
            }}
          />
          <Button variant="default" onClick={() => file.current?.click()}>
            {words.choosePicture}
          </Button>
        </div>
        <figure style={{ margin: 0 }}>
          <canvas
            ref={canvas}
            width={layout.width}
            height={layout.height}
            className={classes.canvas}
            style={look.invert ? { filter: "invert(1)" } : {}}
            role="img"
            aria-label={words.sent(shape.join(" × "))}
          />
          <Text component="figcaption" size="xs" c="dimmed">
            {shape.join(" × ")}
          </Text>
        </figure>
      </div>
      <div className={classes.pictureFields}>
        <NumberInput
          label={words.width}
          min={1}
          max={2048}
          value={layout.width}
          onChange={(value) => setLayout((now) => ({ ...now, width: size(value, now.width) }))}
        />
        <NumberInput
          label={words.height}
          min={1}
          max={2048}
          value={layout.height}
          onChange={(value) => setLayout((now) => ({ ...now, height: size(value, now.height) }))}
        />
        <Select
          label={words.colour}
          allowDeselect={false}
          data={[
            { value: "1", label: words.colours.grey },
            { value: "3", label: words.colours.rgb },
          ]}
          value={String(layout.channels)}
          onChange={(value) => setLayout((now) => ({ ...now, channels: value === "3" ? 3 : 1 }))}
        />
        <Select
          label={words.order}
          allowDeselect={false}
          data={Object.entries(words.orders).map(([value, label]) => ({ value, label }))}
          value={layout.order}
          onChange={(value) => setLayout((now) => ({ ...now, order: value === "hwc" ? "hwc" : "chw" }))}
        />
        <Select
          label={words.scale}
          allowDeselect={false}
          data={Object.entries(words.scales).map(([value, label]) => ({ value, label }))}
          value={look.scale}
          onChange={(value) => setLook((now) => ({ ...now, scale: value === "byte" ? "byte" : "unit" }))}
        />
      </div>
      <Switch
        label={words.invert}
        checked={look.invert}
        onChange={(event) => setLook((now) => ({ ...now, invert: event.currentTarget.checked }))}
      />
    </Stack>
  );
}
