import { Button, Code } from "@mantine/core";
import { Link, useRouteError } from "react-router";
import { messageOf } from "../api/cache";
import { Empty } from "../components/Notice";
import { Page } from "../components/Page";
import { text } from "../text";

/** There is no such page, or no such thing. */
export function NotFound() {
  return (
    <Page passing title={text.notFound.title} bare>
      <Empty
        title={text.notFound.title}
        hint={text.notFound.hint}
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
