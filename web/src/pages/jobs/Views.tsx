import { ActionIcon, Button, Popover, Stack, Text, TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { IconBookmark, IconTrash } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useMe } from "../../app/session";
import { text } from "../../text";
import classes from "./Jobs.module.css";
import { quickViews, sameFilters } from "./query";

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

interface View {
  name: string;
  query: string;
}

const MAX_VIEWS = 50;

/** Views of one's own: a name and a query, kept in this browser. */
export function SavedViews() {
  const [search] = useSearchParams();
  const [views, setViews] = useLocalStorage<View[]>({ key: "pliant-job-views", defaultValue: [] });
  const [name, setName] = useState("");
  const save = (event: FormEvent) => {
    event.preventDefault();
    const called = name.trim();
    if (called === "") return;
    const others = views.filter((view) => view.name !== called).slice(0, MAX_VIEWS - 1);
    setViews([...others, { name: called, query: search.toString() }]);
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
                onClick={() => setViews(views.filter((other) => other.name !== view.name))}
              >
                <IconTrash size={16} />
              </ActionIcon>
            </div>
          ))}
          <form onSubmit={save}>
            <Stack gap="xs">
              <TextInput
                label={words.name}
                maxLength={60}
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
              />
              <Button type="submit" variant="default" disabled={name.trim() === ""}>
                {words.save}
              </Button>
            </Stack>
          </form>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
