import { Modal, type ModalProps } from "@mantine/core";
import { useLayoutEffect } from "react";

/**
 * What opens over a page and has to be closed first. Whoever opened it has the focus again afterwards, also when the
 * dialog goes with what it was in (Mantine sees to those alone that stay and are shown again).
 */
export function Dialog(props: ModalProps) {
  const { opened } = props;
  useLayoutEffect(() => {
    if (!opened) return;
    const opener = document.activeElement;
    return () => {
      window.setTimeout(() => giveFocus(opener), GONE_MS);
    };
  }, [opened]);
  return <Modal {...props} />;
}

const GONE_MS = 20;

/** Give it the focus, unless something else has it by now. */
function giveFocus(opener: Element | null): void {
  const isFree = document.activeElement === null || document.activeElement === document.body;
  if (isFree && opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
}
