import { Alert, Button, Code, Group, Skeleton, Stack, Text, Title } from "@mantine/core";
import { IconAlertTriangle, IconInfoCircle } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { messageOf } from "../api/cache";
import { Refused } from "../api/problem";
import { text } from "../text";
import { CopyButton } from "./Copy";
import classes from "./Notice.module.css";

/** An error, as the server words it, with every field that is wrong. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const problems = error instanceof Refused ? error.problems : [];
  const message = messageOf(error);
  return (
    <Alert color="red" variant="outline" icon={<IconAlertTriangle size={18} />} title={text.failed} role="alert">
      <Text size="sm" className="wrap">
        {message}
      </Text>
      {problems.length > 1 && (
        <ul className={classes.problems}>
          {problems.map((problem) => (
            <li key={`${problem.field} ${problem.message}`}>
              {problem.field !== "" && <Code>{problem.field}</Code>} {problem.message}
            </li>
          ))}
        </ul>
      )}
      {retry && (
        <Button variant="default" mt="sm" onClick={retry}>
          {text.retry}
        </Button>
      )}
    </Alert>
  );
}

/** Why something is as it is, in the server's words, where it stands above all else. */
export function Reason({ failed, children }: { failed: boolean; children: ReactNode }) {
  const color = failed ? "red" : "gray";
  const icon = failed ? <IconAlertTriangle size={18} /> : <IconInfoCircle size={18} />;
  return (
    <Alert color={color} variant="outline" icon={icon} role="status" className="wrap">
      {children}
    </Alert>
  );
}

interface EmptyProps {
  title: string;
  hint?: ReactNode;
  /** What does the same on the command line. */
  command?: string;
  action?: ReactNode;
}

/** Nothing is here yet: what that means, and what to do next. */
export function Empty({ title, hint, command, action }: EmptyProps) {
  return (
    <Stack align="center" gap="sm" className={classes.empty}>
      <Title order={2}>{title}</Title>
      {hint && <Text c="dimmed">{hint}</Text>}
      {action}
      {command && (
        <Group gap="xs" wrap="nowrap" maw="100%">
          <Code className="cut">{command}</Code>
          <CopyButton value={command} />
        </Group>
      )}
    </Stack>
  );
}

/** What is shown while the first answer is on its way: the shape of what comes, so that nothing jumps. */
export function Loading({ rows = 3, height = 36 }: { rows?: number; height?: number }) {
  return (
    <Stack gap="xs" role="status" aria-busy="true" aria-label={text.loading}>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <Skeleton key={row} height={height} radius="md" animate={false} className={classes.late} />
      ))}
    </Stack>
  );
}

interface ShownProps<T> {
  query: { data: T | undefined; error: unknown; refetch: () => unknown };
  rows?: number;
  height?: number;
  children: (data: T) => ReactNode;
}

/** The answer of a query; its error, that there is no such thing, or that it is on its way. What was there stays when a later request fails. */
export function Answer<T>({ query, rows, height, children }: ShownProps<T>) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error instanceof Refused && query.error.status === 404) {
    return <Empty title={text.notFound.title} hint={query.error.message} />;
  }
  if (query.error != null) return <Problem error={query.error} retry={() => query.refetch()} />;
  return <Loading rows={rows} height={height} />;
}
