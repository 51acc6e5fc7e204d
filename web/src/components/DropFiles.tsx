import { Button, Group, Text } from "@mantine/core";
import { IconFile, IconFolder, IconUpload } from "@tabler/icons-react";
import { type DragEvent, type InputHTMLAttributes, type ReactNode, useRef, useState } from "react";
import { type Chosen, type ChosenFile, droppedFiles, filesOf, gather } from "../files/chosen";
import { bytes, counted } from "../format/format";
import { text } from "../text";
import classes from "./DropFiles.module.css";

interface Props {
  /** What the files are, for those who do not see it. */
  label: string;
  chosen: Chosen | null;
  onChoose: (chosen: Chosen | null) => void;
  /** Whether histories, caches and what `.pliantignore` names are left out, as with code. */
  ignoring?: boolean;
  /** What is wrong with it. */
  error?: ReactNode;
  hint?: ReactNode;
  disabled?: boolean;
}

const words = text.files;
const MAX_NAMED = 5;

/** Takes a folder or files that are dropped or chosen, and says what they are. */
export function DropFiles({ label, chosen, onChoose, ignoring = false, error, hint, disabled = false }: Props) {
  const [state, setState] = useState<"" | "over" | "reading" | "unreadable">("");
  const take = async (given: Promise<ChosenFile[]> | ChosenFile[]) => {
    setState("reading");
    try {
      const found = await gather(await given, ignoring);
      if (found !== null) onChoose(found);
      setState("");
    } catch {
      setState("unreadable");
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    if (!disabled) void take(droppedFiles(event.dataTransfer, ignoring));
  };
  const over = (event: DragEvent) => {
    event.preventDefault();
    if (!disabled && state === "") setState("over");
  };
  return (
    <section
      aria-label={label}
      className={classes.drop}
      data-over={state === "over" || undefined}
      data-wrong={error ? true : undefined}
      onDragOver={over}
      onDragLeave={() => setState((now) => (now === "over" ? "" : now))}
      onDrop={drop}
    >
      {chosen === null ? (
        <>
          <IconUpload size={24} stroke={1.6} aria-hidden className="dim" />
          <div>{state === "reading" ? words.reading : words.dropFolder}</div>
        </>
      ) : (
        <What chosen={chosen} />
      )}
      <Group gap="xs" justify="center">
        <Choose folder label={words.folder} disabled={disabled} onFiles={take} />
        <Choose label={words.file} disabled={disabled} onFiles={take} />
      </Group>
      {hint && chosen === null && (
        <Text size="xs" c="dimmed">
          {hint}
        </Text>
      )}
      {(error || state === "unreadable") && (
        <Text size="xs" c="red" role="alert" className="wrap">
          {error || words.unreadable}
        </Text>
      )}
    </section>
  );
}

function What({ chosen }: { chosen: Chosen }) {
  const Icon = chosen.isFolder ? IconFolder : IconFile;
  return (
    <div className={classes.what}>
      <div className={classes.name}>
        <Icon size={18} aria-hidden />
        <strong className="wrap">
          {chosen.name}
          {chosen.isFolder && "/"}
        </strong>
        <span className="dim">{words.chosen(counted(chosen.files.length, "file"), bytes(chosen.numBytes))}</span>
      </div>
      {chosen.leftOut.length > 0 && (
        <Text size="xs" c="dimmed" className="wrap">
          {words.leftOut(named(chosen.leftOut))}
        </Text>
      )}
      {chosen.refused.length > 0 && (
        <Text size="xs" c="red" className="wrap">
          {words.refused(named(chosen.refused))}
        </Text>
      )}
    </div>
  );
}

function named(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return names.slice(0, MAX_NAMED).join(", ") + (more > 0 ? ` ${words.andMore(more)}` : "");
}

interface ChooseProps {
  label: string;
  folder?: boolean;
  disabled: boolean;
  onFiles: (files: ChosenFile[]) => void;
}

function Choose({ label, folder = false, disabled, onFiles }: ChooseProps) {
  const input = useRef<HTMLInputElement>(null);
  const folders = { webkitdirectory: "" } as InputHTMLAttributes<HTMLInputElement>;
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={label}
        {...(folder && folders)}
        onChange={(event) => {
          onFiles(filesOf(event.currentTarget.files));
          event.currentTarget.value = ""; // so that the same can be chosen again
        }}
      />
      <Button variant="default" disabled={disabled} onClick={() => input.current?.click()}>
        {label}
      </Button>
    </>
  );
}
