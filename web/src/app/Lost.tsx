import { Button, Code } from "@mantine/core";
import type { ReactNode } from "react";
import { Link, useRouteError } from "react-router";
import { messageOf } from "../api/cache";
import { Empty } from "../components/Notice";
import { Page } from "../components/Page";
import { text } from "../text";
import { type Permission, useMay, useMe } from "./session";

/** There is no such page, or no such thing. */
export function NotFound() {
  return <Nothing {...text.notFound} />;
}

/** Shows a page to whoever has a permission; to everybody else it says that their role has not. */
export function Allowed({ needs, children }: { needs: Permission; children: ReactNode }) {
  const { role } = useMe();
  if (useMay(needs)) return children;
  const said = text.people.roles[role] ?? role;
  return <Nothing title={text.notAllowed.title} hint={text.notAllowed.hint(said)} />;
}

function Nothing({ title, hint }: { title: string; hint: string }) {
  return (
    <Page passing title={title} bare>
      <Empty
        title={title}
        hint={hint}
        action={
          <Button component={Link} to="/" variant="default">
            {text.notFound.home}
          </Button>
        }
      />
    </Page>
  );
}

/** A page has thrown: the others still work. */
export function Crashed() {
  const error = useRouteError();
  return (
    <Page passing title={text.crashed.title} bare>
      <Empty
        title={text.crashed.title}
        hint={text.crashed.hint}
        action={
          <>
            <Code block>{messageOf(error)}</Code>
            <Button onClick={() => window.location.reload()}>{text.reload}</Button>
          </>
        }
      />
    </Page>
  );
}
