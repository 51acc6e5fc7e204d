import { useLocation } from "react-router";
import type { Schemas } from "../api/client";
import { useChange, useGet } from "../api/queries";
import { text } from "../text";
import { bestFirst, fits, placeOf } from "./found";
import { showKeys } from "./keys";
import { placesOf } from "./places";
import { recentPages } from "./recent";
import { useScheme } from "./scheme";
import { type Permission, useMe } from "./session";

const words = text.palette;
const RECENT = 5;
const FOUND = 20;

/** Something that one can choose: a page to go to, or something to do. */
export interface Found {
  id: string;
  kind: string;
  label: string;
  detail?: string;
  path?: string;
  run?: () => void;
}

interface Choices {
  items: readonly Found[];
  /** Whether the server is still asked for more. */
  asking: boolean;
}

/** What fits a search: pages and commands at once, and everything else as soon as the server has answered. */
export function usePalette(query: string, asked: string): Choices {
  const me = useMe();
  const { pathname } = useLocation();
  const commands = useCommands();
  const enabled = asked !== "" && me.permissions.includes("jobs:read");
  const answer = useGet(
    "/v1/search",
    { params: { query: { q: asked.slice(0, 100), limit: FOUND } } },
    { enabled, retry: false, keepPrevious: true, fresh: true },
  );
  const pages = placesOf(me.permissions)
    .flatMap((group) => group.places)
    .map((place) => ({ id: place.path, kind: words.page, label: place.title, path: place.path }));
  pages.push({ id: "/me", kind: words.page, label: text.account, path: "/me" });
  const known = new Set(pages.map((page) => page.path));
  const recent = recentPages(pathname)
    .filter((visit) => !known.has(visit.path))
    .slice(0, query === "" ? RECENT : undefined)
    .map((visit) => ({ id: `recent ${visit.path}`, kind: words.recent, label: visit.title, path: visit.path }));
  const own = bestFirst(
    [...recent, ...pages, ...commands].filter((item) => fits(item.label, query)),
    query,
  );
  const stale = query !== asked || answer.isPlaceholderData;
  const found =
    query === "" || !enabled
      ? []
      : (answer.data?.found ?? []).map(itemOf).filter((item) => !stale || fits(item.label, query));
  const there = new Set(found.map((item) => item.path));
  return {
    items: [...own.filter((item) => item.kind !== words.recent || !there.has(item.path)), ...found],
    asking: query !== "" && enabled && (answer.isFetching || stale),
  };
}

function itemOf(noun: Schemas["FoundNoun"]): Found {
  const state = noun.state == null ? null : (text.states[noun.state] ?? noun.state);
  return {
    id: `${noun.kind} ${noun.id}`,
    kind: words.kinds[noun.kind] ?? noun.kind,
    label: noun.id === noun.name ? noun.name : `${noun.id} ${noun.name}`,
    detail: [state, noun.detail].filter(Boolean).join(" · "),
    path: placeOf(noun),
  };
}

/** What one can do from everywhere; what a role may not do is not there. */
function useCommands(): Found[] {
  const me = useMe();
  const [scheme, nextScheme] = useScheme();
  const logOff = useChange("post", "/v1/logoff", {
    onSettled: () => window.location.assign(new URL("logon", document.baseURI)),
  });
  const all: (Found & { needs?: Permission })[] = [
    { id: "submit", kind: words.command, label: words.submit, path: "/submit", needs: "jobs:write" },
    { id: "queue", kind: words.command, label: words.queue, path: "/queues?new=queue", needs: "pool:write" },
    { id: "password", kind: words.command, label: words.password, path: "/me" },
    {
      id: "scheme",
      kind: words.command,
      label: words.scheme,
      detail: `${text.scheme.label}: ${text.scheme[scheme]}`,
      run: nextScheme,
    },
    { id: "keys", kind: words.command, label: words.keys, run: showKeys },
    { id: "logoff", kind: words.command, label: text.logOff, run: () => logOff.mutate({}) },
  ];
  return all
    .filter(({ needs }) => needs === undefined || me.permissions.includes(needs))
    .map(({ needs: _, ...item }) => item);
}
