import { Button, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { Crumbs } from "../../components/Crumbs";
import { Empty } from "../../components/Notice";
import { Page } from "../../components/Page";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import { DifferencesPanel } from "./DifferencesPanel";
import classes from "./Job.module.css";
import { Board } from "./metrics/Board";
import { jobsOf } from "./metrics/curves";

const words = text.job.metrics;

/** Several jobs over each other: their metrics, and in what they differ. */
export default function Compare() {
  const address = useAddress();
  const given = address.get("ids");
  const ids = jobsOf(given);
  const [typed, setTyped] = useState(ids.join(", "));
  const show = (event: FormEvent) => {
    event.preventDefault();
    address.set({ ids: jobsOf(typed).join(",") });
  };
  return (
    <Page
      title={words.compare}
      heading={<Crumbs above={[{ to: "/jobs", title: text.nav.jobs }]} name={words.compare} />}
    >
      <form onSubmit={show} className={classes.tools}>
        <TextInput
          label={words.compareIds}
          placeholder="job-7, job-8"
          maxLength={200}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Button type="submit" variant="default">
          {text.jobs.show}
        </Button>
      </form>
      {ids.length === 0 ? (
        <Empty title={words.compareNone} hint={words.compareHint} />
      ) : (
        <>
          <Board key={ids.join()} ids={ids} only={address.get("metric")} canOverlay={false} />
          {ids.length === 2 && ids[0] !== undefined && ids[1] !== undefined && (
            <DifferencesPanel mine={ids[0]} theirs={ids[1]} />
          )}
        </>
      )}
    </Page>
  );
}
