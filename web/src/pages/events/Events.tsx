import { Button, Group, MultiSelect, TextInput } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay, IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { Answer, Empty, Problem } from "../../components/Notice";
import { Page } from "../../components/Page";
import { useAddress } from "../../components/useAddress";
import { useTyped } from "../../components/useTyped";
import { count } from "../../format/format";
import { text } from "../../text";
import { EventRow } from "./EventRow";
import classes from "./Events.module.css";
import { type Filter, holds, type Kind } from "./list";
import { useEventList } from "./useEventList";

const words = text.events;
const KINDS = Object.entries(words.kinds).map(([value, label]) => ({ value, label }));

/** What happened, the newest first, as it happens. */
export default function Events() {
  const address = useAddress();
  const kinds = address.all("kind").filter((kind): kind is Kind => kind in words.kinds);
  const filter: Filter = { kinds, job: address.get("job") };
  const [paused, setPaused] = useState(false);
  return (
    <Page
      title={text.nav.events}
      actions={
        <Button
          variant="default"
          leftSection={paused ? <IconPlayerPlay size={16} /> : <IconPlayerPause size={16} />}
          onClick={() => setPaused(!paused)}
        >
          {paused ? words.resume : words.pause}
        </Button>
      }
    >
      <Filters filter={filter} />
      <List
        key={`${kinds.join()} ${filter.job}`}
        filter={filter}
        find={address.get("q") ?? ""}
        paused={paused}
        onResume={() => setPaused(false)}
      />
    </Page>
  );
}

function Filters({ filter }: { filter: Filter }) {
  const address = useAddress();
  const [find, setFind] = useTyped(address.get("q") ?? "", (q) => address.set({ q }));
  const [job, setJob] = useTyped(filter.job ?? "", (value) => address.set({ job: value.trim() }));
  return (
    <Group gap="sm" align="flex-start">
      <MultiSelect
        aria-label={words.kind}
        placeholder={filter.kinds.length === 0 ? words.anyKind : undefined}
        data={KINDS}
        value={[...filter.kinds]}
        onChange={(kinds) => address.set({ kind: kinds })}
        searchable
        clearable
        hidePickedOptions
        className={classes.kinds}
      />
      <TextInput
        aria-label={words.job}
        placeholder={words.jobHint}
        value={job}
        maxLength={60}
        className={classes.job}
        onChange={(event) => setJob(event.currentTarget.value)}
      />
      <TextInput
        type="search"
        aria-label={words.find}
        placeholder={words.findHint}
        leftSection={<IconSearch size={14} />}
        value={find}
        maxLength={200}
        className={classes.find}
        onChange={(event) => setFind(event.currentTarget.value)}
      />
    </Group>
  );
}

interface ListProps {
  filter: Filter;
  find: string;
  paused: boolean;
  onResume: () => void;
}

function List({ filter, find, paused, onResume }: ListProps) {
  const list = useEventList(filter, paused);
  const shown = find.trim() === "" ? list.events : list.events.filter((event) => holds(event, find));
  return (
    <Answer query={list.first} rows={10}>
      {() => (
        <>
          {list.numNew > 0 && (
            <Button variant="light" onClick={onResume} className={classes.fresh}>
              {words.fresh(count(list.numNew), list.numNew === 1)}
            </Button>
          )}
          {shown.length < list.events.length && (
            <div className="dim">{words.among(count(shown.length), count(list.events.length))}</div>
          )}
          {shown.length === 0 ? (
            <Empty title={words.empty.title} hint={words.empty.hint} command={words.empty.command} />
          ) : (
            <ol className={classes.list} aria-label={words.list}>
              {shown.map((event) => (
                <EventRow key={event.seq} event={event} />
              ))}
            </ol>
          )}
          {list.problem !== null && <Problem error={list.problem} />}
          {list.hasOlder ? (
            <Button variant="default" loading={list.loading} onClick={list.loadOlder} className={classes.older}>
              {words.older}
            </Button>
          ) : (
            shown.length > 0 && <div className="dim">{words.end}</div>
          )}
        </>
      )}
    </Answer>
  );
}
