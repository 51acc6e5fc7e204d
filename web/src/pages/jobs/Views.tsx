import { ActionIcon, Button, Popover, Stack, Text, TextInput } from "@mantine/core";
import { IconBookmark, IconTrash } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useCanChange } from "../../app/Connection";
import { useMe } from "../../app/session";
import { text } from "../../text";
import classes from "./Jobs.module.css";
import { quickViews, sameFilters } from "./query";
import { withView } from "./saved";
import { useSavedViews } from "./useSavedViews";

const words = text.jobs.views;

/** The views that everybody has. They keep the order and the columns that were chosen. */
export function QuickViews() {
  const me = useMe();
  const [search] = useSearchParams();
  return (
    <nav aria-label={words.label} className={classes.views}>
      {quickViews(me.name).map((view) => {
        const next = new URLSearchParams(view.query);
        for (const name of ["sort", "cols"]) {
          const kept = search.get(name);
          if (kept !== null) next.set(name, kept);
        }
        const isShown = sameFilters(search, new URLSearchParams(view.query));
        return (
          <Link
            key={view.id}
            to={{ search: next.toString() }}
            className={classes.view}
            aria-current={isShown ? "true" : undefined}
          >
            {words[view.id]}
          </Link>
        );
      })}
    </nav>
  );
}

/** Views of one's own: a name and a query, kept by the server. */
export function SavedViews() {
  const [search] = useSearchParams();
  const { views, save: keep, isBusy, error } = useSavedViews();
  const canChange = useCanChange();
  const [name, setName] = useState("");
  const save = (event: FormEvent) => {
    event.preventDefault();
    const called = name.trim();
    if (called === "") return;
    keep(withView(views, { name: called, query: search.toString() }));
    setName("");
  };
  return (
    <Popover position="bottom-start" shadow="md" width={280} trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<IconBookmark size={16} />}>
          {words.saved}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={words.saved}>
        <Stack gap="xs">
          {views.length === 0 && (
            <Text size="sm" c="dimmed">
              {words.none}
            </Text>
          )}
          {views.map((view) => (
            <div key={view.name} className={classes.saved}>
              <Link to={{ search: view.query }} className="cut" title={view.name}>
                {view.name}
              </Link>
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={words.remove(view.name)}
                disabled={isBusy || !canChange}
                onClick={() => keep(views.filter((other) => other.name !== view.name))}
              >
                <IconTrash size={16} />
              </ActionIcon>
            </div>
          ))}
          {error !== null && (
            <Text size="sm" c="red" role="alert">
              {error.message}
            </Text>
          )}
          <form onSubmit={save}>
            <Stack gap="xs">
              <TextInput
                label={words.name}
                maxLength={60}
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
              />
              <Button type="submit" variant="default" disabled={name.trim() === "" || isBusy || !canChange}>
                {words.save}
              </Button>
            </Stack>
          </form>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
