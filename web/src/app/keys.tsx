import { Switch, Table } from "@mantine/core";
import { useDisclosure, useLocalStorage } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import { useNavigate } from "react-router";
import { Dialog } from "../components/Dialog";
import { text } from "../text";
import { PLACES } from "./places";
import { useMe } from "./session";

/** How long after `G` its second letter may come. */
const SECOND_MS = 1500;

/** Whether a key is meant for a field, not for the page. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  return (
    target instanceof HTMLElement &&
    target.closest("input, textarea, select, [contenteditable], [role=dialog], [role=slider]") !== null
  );
}

/** Whether single letters act as keys in this browser, and what changes that. */
export function useKeysSwitch(): [boolean, (enabled: boolean) => void] {
  const [enabled, setEnabled] = useLocalStorage({ key: "pliant-keys", defaultValue: true });
  return [enabled, setEnabled];
}

const SHOW = "pliant:keys";

/** Show the list of keys. */
export function showKeys(): void {
  window.dispatchEvent(new Event(SHOW));
}

/** The keys of the whole console: `G` and a letter goes somewhere, `C` submits, `/` searches, `?` lists them. */
export function Keys() {
  const me = useMe();
  const navigate = useNavigate();
  const [enabled, setEnabled] = useKeysSwitch();
  const [shown, { open, close }] = useDisclosure(false);
  const wentAt = useRef(0);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event) || event.defaultPrevented) return;
      if (event.key === "?") return open();
      if (!enabled) return;
      const key = event.key.toLowerCase();
      if (Date.now() - wentAt.current < SECOND_MS) {
        wentAt.current = 0;
        const place = PLACES.flatMap((group) => group.places).find((candidate) => candidate.key === key);
        if (place !== undefined && me.permissions.includes(place.needs)) navigate(place.path);
        return;
      }
      if (key === "g") wentAt.current = Date.now();
      if (key === "c" && me.permissions.includes("jobs:write")) navigate("/submit");
      if (key === "/") {
        const field = document.querySelector<HTMLInputElement>("main input[type=search]");
        field?.focus();
        if (field) event.preventDefault();
      }
    };
    window.addEventListener("keydown", press);
    window.addEventListener(SHOW, open);
    return () => {
      window.removeEventListener("keydown", press);
      window.removeEventListener(SHOW, open);
    };
  }, [enabled, me, navigate, open]);
  return (
    <Dialog opened={shown} onClose={close} title={text.keys.title}>
      <Table>
        <Table.Tbody>
          <Row keys="Ctrl K" what={text.keys.palette} />
          <Row keys="/" what={text.keys.page} />
          <Row keys="C" what={text.keys.submit} />
          {PLACES.flatMap((group) => group.places)
            .filter((place) => place.key !== undefined && me.permissions.includes(place.needs))
            .map((place) => (
              <Row key={place.path} keys={`G ${place.key?.toUpperCase()}`} what={text.keys.go(place.title)} />
            ))}
          <Row keys="?" what={text.keys.help} />
        </Table.Tbody>
      </Table>
      <Switch
        mt="md"
        label={text.keys.enabled}
        checked={enabled}
        onChange={(event) => setEnabled(event.currentTarget.checked)}
      />
    </Dialog>
  );
}

function Row({ keys, what }: { keys: string; what: string }) {
  return (
    <Table.Tr>
      <Table.Td w={100}>
        <kbd>{keys}</kbd>
      </Table.Td>
      <Table.Td>{what}</Table.Td>
    </Table.Tr>
  );
}
