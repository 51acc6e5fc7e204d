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
      const last = document.activeElement;
      window.setTimeout(() => giveFocus(opener, last), GONE_MS);
    };
  }, [opened]);
  return <Modal {...props} />;
}

const GONE_MS = 20;

/** Give it the focus, unless something else has it by now than what had it last: a busy page may not have taken that away. */
function giveFocus(opener: Element | null, last: Element | null): void {
  const isFree = [null, document.body, last].includes(document.activeElement);
  if (isFree && opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
}
