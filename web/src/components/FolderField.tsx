import { Button, Input, Text } from "@mantine/core";
import { IconFolderOpen } from "@tabler/icons-react";
import { type DragEvent, useId, useRef, useState } from "react";
import { type Chosen, type ChosenFile, droppedFiles, filesOf, gather } from "../files/chosen";
import { bytes, counted } from "../format/format";
import { text } from "../text";
import classes from "./FolderField.module.css";

interface Props {
  label: string;
  /** What belongs into the folder. */
  hint: string;
  folder: Chosen | null;
  onFolder: (folder: Chosen) => void;
  error?: string | null;
}

const words = text.folder;

/** A folder that is dropped or chosen. */
export function FolderField({ label, hint, folder, onFolder, error }: Props) {
  const field = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const id = useId();
  const take = async (files: readonly ChosenFile[]) => {
    const chosen = await gather(files, true);
    if (chosen !== null) onFolder(chosen);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void droppedFiles(event.dataTransfer, true).then(take);
  };
  return (
    <Input.Wrapper label={label} error={error} labelElement="div" size="xs">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: dropping is a second way to what the button does */}
      <div
        className={classes.place}
        data-over={over}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <IconFolderOpen size={24} stroke={1.4} aria-hidden />
        <div className={classes.said} id={id} aria-live="polite">
          {folder === null ? (
            <Text c="dimmed" size="sm">
              {hint}
            </Text>
          ) : (
            <>
              <Text size="sm" fw={500} className="wrap">
                {folder.name}
              </Text>
              <Text c="dimmed" size="xs">
                {counted(folder.files.length, "file")} · {bytes(folder.numBytes)}
                {folder.leftOut.length > 0 && ` · ${words.leftOut(folder.leftOut.join(", "))}`}
              </Text>
            </>
          )}
        </div>
        <Button variant="default" onClick={() => field.current?.click()} aria-describedby={id}>
          {folder === null ? words.choose : words.other}
        </Button>
        <input
          ref={field}
          type="file"
          hidden
          multiple
          aria-label={label}
          {...{ webkitdirectory: "" }}
          onChange={(event) => {
            void take(filesOf(event.currentTarget.files));
            event.currentTarget.value = "";
          }}
        />
      </div>
    </Input.Wrapper>
  );
}
