import { notifications } from "@mantine/notifications";
import { useRef, useState } from "react";
import { useNavigate } from "react-router";
import { call, type Schemas } from "../../api/client";
import { Refused } from "../../api/problem";
import { send } from "../../api/send";
import type { Chosen } from "../../files/chosen";
import { tarGzOf } from "../../files/tar";
import { percent } from "../../format/format";
import { text } from "../../text";
import type { Asked } from "./request";

const words = text.submission;

/** Code that is sent, or the job whose code is run again. */
export type Source = { kind: "code"; chosen: Chosen } | { kind: "job"; id: string };

/** Submits; says how far that is, and what was refused. */
export function useSubmission() {
  const navigate = useNavigate();
  const [progress, setProgress] = useState<string | null>(null);
  const [share, setShare] = useState(0);
  const [refused, setRefused] = useState<Refused | null>(null);
  const stop = useRef<AbortController | null>(null);
  const submit = async (source: Source, asked: Asked) => {
    if (stop.current !== null) return;
    const abort = new AbortController();
    stop.current = abort;
    setRefused(null);
    try {
      const job =
        source.kind === "job"
          ? await again(source.id, asked, setProgress)
          : await sendCode(source.chosen, asked, abort.signal, (said, part) => {
              setProgress(said);
              setShare(part);
            });
      notifications.show({ title: words.submitted(`${job.id} (${job.spec.name})`), message: job.notes?.join(" ") });
      navigate(`/jobs/${job.id}`);
    } catch (error) {
      if (error instanceof Refused) setRefused(error);
      else if (!(error instanceof DOMException && error.name === "AbortError")) {
        setRefused(new Refused(0, error instanceof DOMException ? text.files.unreadable : String(error)));
      }
    } finally {
      stop.current = null;
      setProgress(null);
      setShare(0);
    }
  };
  return { submit, stop: () => stop.current?.abort(), progress, share, refused, forget: () => setRefused(null) };
}

async function again(id: string, asked: Asked, tell: (said: string) => void): Promise<Schemas["RerunJob"]> {
  tell(words.checking);
  const body = asked.changes as Schemas["RerunRequest"]; // what is left out stays as it was
  return call("post", "/v1/jobs/{job_id}/rerun", { params: { path: { job_id: id } }, body });
}

async function sendCode(
  chosen: Chosen,
  asked: Asked,
  signal: AbortSignal,
  tell: (said: string, share: number) => void,
): Promise<Schemas["NotedJob"]> {
  tell(words.packing, 0);
  const code = await tarGzOf(chosen.files);
  const form = new FormData();
  form.append("job", new Blob([JSON.stringify(asked.whole)], { type: "application/json" }), "job.json");
  form.append("code", code, "code.tar.gz");
  tell(words.sending(percent(0)), 0);
  return send<Schemas["NotedJob"]>({
    method: "POST",
    path: "/v1/jobs",
    body: form,
    signal,
    onProgress: (sent, total) =>
      sent < total ? tell(words.sending(percent(sent / total)), sent / total) : tell(words.checking, 1),
  });
}
