import { TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { Dialog } from "../components/Dialog";
import { text } from "../text";
import classes from "./Palette.module.css";
import { type Found, usePalette } from "./palette_items";

/** Search over everything there is, and everything one can do. Arrow keys choose, Enter goes. */
export default function PaletteDialog({ opened, close }: { opened: boolean; close: () => void }) {
  return (
    <Dialog
      opened={opened}
      onClose={close}
      withCloseButton={false}
      padding={0}
      size={640}
      yOffset="12vh"
      centered={false}
    >
      {opened && <Search close={close} />}
    </Dialog>
  );
}

function Search({ close }: { close: () => void }) {
  const navigate = useNavigate();
  const id = useId();
  const [query, setQuery] = useState("");
  const [asked] = useDebouncedValue(query.trim(), 120);
  const [chosen, setChosen] = useState(0);
  const { items: found, asking } = usePalette(query.trim(), asked);
  const current = Math.min(chosen, found.length - 1);
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was chosen by key is brought into sight
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const go = (item: Found | undefined) => {
    if (item === undefined) return;
    close();
    item.run?.();
    if (item.path !== undefined) navigate(item.path);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setChosen((current + 1) % Math.max(1, found.length));
    else if (event.key === "ArrowUp") setChosen((current - 1 + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") go(found[current]);
    else return;
    event.preventDefault();
  };
  return (
    <div>
      <TextInput
        data-autofocus
        aria-label={text.search}
        placeholder={text.search}
        leftSection={<IconSearch size={18} />}
        variant="unstyled"
        size="md"
        value={query}
        onChange={(event) => {
          setQuery(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={press}
        role="combobox"
        aria-expanded
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length > 0 ? `${id}-${current}` : undefined}
        className={classes.field}
      />
      <div ref={list} id={`${id}-list`} role="listbox" aria-label={text.search} className={classes.list}>
        {found.map((item, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
          <div
            key={item.id}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            className={classes.item}
            onClick={() => go(item)}
            onMouseMove={() => setChosen(index)}
          >
            <span className={classes.kind}>{item.kind}</span>
            <span className={`${classes.label} cut`} title={item.label}>
              {item.label}
            </span>
            {item.detail && <span className={`${classes.detail} cut`}>{item.detail}</span>}
          </div>
        ))}
      </div>
      {found.length === 0 && (
        <div className={classes.nothing} role="status">
          {asking ? text.palette.asking : text.palette.nothing}
        </div>
      )}
    </div>
  );
}
