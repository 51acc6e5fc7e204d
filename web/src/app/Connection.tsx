import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { useConnection } from "../api/live";
import { useGet } from "../api/queries";
import { time } from "../format/format";
import { text } from "../text";
import classes from "./Connection.module.css";

/** Whether what is shown is what is: live, or on its way back. */
export function ConnectionState() {
  const connection = useConnection();
  return (
    <span className={classes.state} data-connection={connection} role="status">
      <span className={classes.dot} aria-hidden />
      {text.connection[connection]}
    </span>
  );
}

/** Says above the page that the server is away, and since when; or that it has a new version of the console. */
export function OfflineBar() {
  const connection = useConnection();
  const [since, setSince] = useState<number | null>(null);
  const [renewed, setRenewed] = useState(false);
  useEffect(() => {
    if (connection === "live") setSince(null);
    else if (connection === "offline") setSince((known) => known ?? Date.now() / 1000);
  }, [connection]);
  useEffect(() => {
    const renew = (event: Event) => {
      event.preventDefault();
      setRenewed(true);
    };
    window.addEventListener("vite:preloadError", renew);
    return () => window.removeEventListener("vite:preloadError", renew);
  }, []);
  const health = useGet("/v1/healthz", {}, { enabled: connection === "live", retry: false });
  const [first, setFirst] = useState<string | null>(null);
  const version = health.data?.version ?? null;
  useEffect(() => {
    if (version === null) return;
    if (first === null) setFirst(version);
    else if (first !== version) setRenewed(true);
  }, [first, version]);
  if (renewed) {
    return (
      <div className={classes.bar} role="status">
        {text.newVersion}
        <Button variant="default" onClick={() => window.location.reload()}>
          {text.reload}
        </Button>
      </div>
    );
  }
  if (since === null) return null;
  return (
    <div className={classes.bar} role="alert">
      {text.connection.since(time(since))}
    </div>
  );
}

/** Whether something can be changed now: not while the server is away. Changes are never kept for later. */
export function useCanChange(): boolean {
  return useConnection() !== "offline";
}
