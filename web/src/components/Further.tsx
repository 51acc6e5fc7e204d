import { Button, Collapse, Stack } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import { text } from "../text";
import classes from "./Further.module.css";

const words = text.submission;

interface Props {
  /** It is open at first. */
  open: boolean;
  /** What stands on the button that opens it. */
  more?: string;
  children: ReactNode;
}

/** What most people need not say. */
export function Further({ open, more = words.more, children }: Props) {
  const [opened, setOpened] = useState(open);
  const Icon = opened ? IconChevronDown : IconChevronRight;
  return (
    <div>
      <Button
        variant="subtle"
        color="gray"
        leftSection={<Icon size={16} aria-hidden />}
        aria-expanded={opened}
        onClick={() => setOpened(!opened)}
      >
        {opened ? words.less : more}
      </Button>
      <Collapse expanded={opened} mx={-4} px={4}>
        {opened && (
          <div className={classes.further}>
            <Stack gap="sm">{children}</Stack>
          </div>
        )}
      </Collapse>
    </div>
  );
}
