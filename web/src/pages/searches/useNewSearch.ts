import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { ask, call, type Schemas } from "../../api/client";
import { addressOf } from "../../api/place";
import { Refused, Unreachable } from "../../api/problem";
import { send } from "../../api/send";
import type { Chosen } from "../../files/chosen";
import { tarGzOf } from "../../files/tar";
import { searchesChanged } from "./changed";
import { bodyOf, knownOf, type TypedSearch } from "./search_form";

const TYPING_MS = 250;
const PAGE = 1000;
const MAX_KNOWN = 10_000;
const UNNAMED = "unnamed-search";

export type Preview = Schemas["SearchPreview"];

/** What the server says of a search while it is typed; without its code, which need not be chosen yet. */
export function useSearchPreview(typed: TypedSearch, isWrong: boolean) {
  const isNamed = (typed.job.name ?? "").trim() !== "";
  const body = bodyOf(typed);
  const whole = { ...body, script: body.script ?? "train.py", name: isNamed ? body.name : UNNAMED };
  const [asked] = useDebouncedValue(JSON.stringify(whole), TYPING_MS);
  const preview = useQuery<Preview, Refused>({
    queryKey: ["what-if", "search", asked],
    queryFn: ({ signal }) => call("post", "/v1/searches/preview", { body: JSON.parse(asked) }, signal),
    placeholderData: (before) => before,
    enabled: !isWrong,
    retry: false,
    gcTime: 10_000,
  });
  return preview;
}

/** Begins a search; says how far its code has been sent, and what was refused. */
export function useBegin() {
  const navigate = useNavigate();
  const [sent, setSent] = useState<number | null>(null);
  const [error, setError] = useState<Refused | null>(null);
  const start = (typed: TypedSearch, code: Chosen | string | null) => {
    setError(null);
    setSent(0);
    void sendSearch(typed, code, setSent)
      .then((view) => {
        searchesChanged();
        navigate(`/searches/${view.name}`);
      })
      .catch((problem: unknown) => setError(problem instanceof Refused ? problem : new Unreachable()))
      .finally(() => setSent(null));
  };
  return { start, sent, error, forget: () => setError(null) };
}

async function sendSearch(
  typed: TypedSearch,
  code: Chosen | string | null,
  onSent: (share: number) => void,
): Promise<Schemas["SearchView"]> {
  const packed =
    typeof code === "string"
      ? await (await ask(addressOf(`/v1/jobs/${encodeURIComponent(code)}/code`))).blob()
      : await tarGzOf(code?.files ?? []);
  const known = typed.warmStart === "" ? [] : await knownTrials(typed.warmStart, typed);
  const form = new FormData();
  form.append("job", JSON.stringify(bodyOf(typed, known)));
  form.append("code", packed, "code.tar.gz");
  return send<Schemas["SearchView"]>({
    method: "POST",
    path: "/v1/searches",
    body: form,
    onProgress: (done, total) => onSent(total > 0 ? done / total : 0),
  });
}

/** Trials of another search that this one could have had: the newest. */
async function knownTrials(name: string, typed: TypedSearch): Promise<object[]> {
  const found: object[] = [];
  let after: number | null = -1;
  while (after !== null) {
    const query = { after, limit: PAGE, state: ["completed", "pruned"] as Schemas["TrialState"][] };
    const page: Schemas["TrialPage"] = await call("get", "/v1/searches/{name}/trials", {
      params: { path: { name }, query },
    });
    found.push(...page.trials.flatMap((trial) => knownOf(trial, typed) ?? []));
    after = page.next;
  }
  return found.slice(-MAX_KNOWN);
}
