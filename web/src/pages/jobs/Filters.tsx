import { ActionIcon, Button, Checkbox, MultiSelect, Popover, Stack, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconColumns, IconFilter, IconSearch, IconX } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import { COLUMN_IDS, USUAL } from "./columns";
import classes from "./Jobs.module.css";
import { columnsOf, FILTERS, type Filter, wordsOf } from "./query";

const words = text.jobs;
const SEARCH_AFTER_MS = 250;
const KINDS = ["training", "fixed", "trial", "endpoint"];

/** Searches as one types. */
export function SearchField() {
  const address = useAddress();
  const given = address.get("q") ?? "";
  const [typed, setTyped] = useState(given);
  const sent = useRef(given);
  const send = useDebouncedCallback((value: string) => {
    sent.current = value;
    address.set({ q: value });
  }, SEARCH_AFTER_MS);
  useEffect(() => {
    if (given === sent.current) return;
    sent.current = given;
    setTyped(given);
  }, [given]);
  return (
    <TextInput
      type="search"
      className={classes.search}
      aria-label={words.search}
      placeholder={words.searchHint}
      leftSection={<IconSearch size={16} aria-hidden />}
      maxLength={200}
      value={typed}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        send(event.currentTarget.value);
      }}
    />
  );
}

/** Chooses which jobs are listed. */
export function FilterMenu() {
  const address = useAddress();
  const [search] = useSearchParams();
  const queues = useGet("/v1/queues", {}, { enabled: useMay("pool:read") });
  const names = queues.data?.queues.map((view) => view.queue.name) ?? [];
  const of = (filter: Filter) => wordsOf(search.getAll(filter));
  const states = Object.entries(text.states).map(([value, label]) => ({ value, label }));
  const known = [
    { value: "waiting", label: words.views.waiting },
    { value: "ended", label: words.views.ended },
    ...states,
  ].filter((one) => one.value !== "pending");
  const choose = (filter: Filter) => (values: string[]) => address.set({ [filter]: values });
  return (
    <Popover position="bottom-start" shadow="md" width={300} trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<IconFilter size={16} />}>
          {words.filters}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={words.filters}>
        <Stack gap="xs">
          <MultiSelect
            label={words.filter.state}
            data={known}
            value={of("state")}
            onChange={choose("state")}
            comboboxProps={{ withinPortal: false }}
          />
          <MultiSelect
            label={words.filter.kind}
            data={KINDS.map((kind) => ({ value: kind, label: words.kinds[kind] ?? kind }))}
            value={of("kind")}
            onChange={choose("kind")}
            comboboxProps={{ withinPortal: false }}
          />
          <MultiSelect
            label={words.filter.queue}
            data={[...new Set([...names, ...of("queue")])]}
            value={of("queue")}
            onChange={choose("queue")}
            searchable
            comboboxProps={{ withinPortal: false }}
          />
          <WordsField filter="owner" label={words.filter.owner} />
          <WordsField filter="tag" label={words.filter.tag} placeholder={words.filter.tagHint} />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function WordsField({ filter, label, placeholder }: { filter: Filter; label: string; placeholder?: string }) {
  const address = useAddress();
  const given = wordsOf(address.all(filter)).join(", ");
  const [typed, setTyped] = useState(given);
  useEffect(() => setTyped(given), [given]);
  const send = () => address.set({ [filter]: wordsOf([typed]) });
  return (
    <TextInput
      label={label}
      description={words.filter.several}
      placeholder={placeholder}
      maxLength={400}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={send}
      onKeyDown={(event) => event.key === "Enter" && send()}
    />
  );
}

/** What the list is filtered by; each can be taken away. */
export function FilterPills() {
  const address = useAddress();
  const [search] = useSearchParams();
  const given = FILTERS.flatMap((filter) => wordsOf(search.getAll(filter)).map((word) => ({ filter, word })));
  if (given.length === 0) return null;
  return (
    <div className={classes.bar}>
      {given.map(({ filter, word }) => {
        const shown = `${filter}: ${word}`;
        return (
          <span key={shown} className={classes.pill}>
            <span className="cut">{shown}</span>
            <ActionIcon
              variant="subtle"
              color="gray"
              size={24}
              aria-label={words.filter.remove(shown)}
              onClick={() =>
                address.set({ [filter]: wordsOf(search.getAll(filter)).filter((other) => other !== word) })
              }
            >
              <IconX size={14} />
            </ActionIcon>
          </span>
        );
      })}
      <Button variant="subtle" onClick={() => address.set(Object.fromEntries(FILTERS.map((filter) => [filter, null])))}>
        {words.filter.clear}
      </Button>
    </div>
  );
}

/** Chooses which columns are shown. */
export function ColumnMenu() {
  const address = useAddress();
  const shown = columnsOf(address.get("cols"), COLUMN_IDS, USUAL);
  const toggle = (id: string, on: boolean) => {
    const next = COLUMN_IDS.filter((other) => (other === id ? on : shown.has(other)));
    address.set({ cols: next.join() === USUAL.join() || next.length === 0 ? null : next.join() });
  };
  return (
    <Popover position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<IconColumns size={16} />} visibleFrom="sm">
          {words.chooseColumns}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={words.chooseColumns}>
        <Stack gap="xs">
          {COLUMN_IDS.map((id) => (
            <Checkbox
              key={id}
              label={words.columns[id]}
              checked={shown.has(id)}
              disabled={id === "id"}
              onChange={(event) => toggle(id, event.currentTarget.checked)}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
