import { lazy, Suspense, useEffect, useState } from "react";

const Opened = lazy(() => import("./PaletteDialog"));
const OPEN = "pliant:palette";

/** Open the command palette. */
export function openPalette(): void {
  window.dispatchEvent(new Event(OPEN));
}

/** The command palette: its code comes when it is asked for first, by Ctrl-K or by a click. */
export function Palette() {
  const [opened, setOpened] = useState(false);
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    const open = () => {
      setAsked(true);
      setOpened(true);
    };
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open();
      }
    };
    window.addEventListener(OPEN, open);
    window.addEventListener("keydown", press);
    return () => {
      window.removeEventListener(OPEN, open);
      window.removeEventListener("keydown", press);
    };
  }, []);
  if (!asked) return null;
  return (
    <Suspense fallback={null}>
      <Opened opened={opened} close={() => setOpened(false)} />
    </Suspense>
  );
}
