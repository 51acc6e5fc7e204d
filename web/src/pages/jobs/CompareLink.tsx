import { Button } from "@mantine/core";
import { Link } from "react-router";
import { text } from "../../text";
import { MOST_JOBS } from "../job/metrics/curves";

/** Leads to some jobs over each other; two at least, and as many as colours tell apart. */
export function CompareLink({ ids }: { ids: readonly string[] }) {
  const { compare, compareHow } = text.jobs;
  if (ids.length < 2 || ids.length > MOST_JOBS) {
    return (
      <Button variant="default" disabled title={compareHow(MOST_JOBS)}>
        {compare}
      </Button>
    );
  }
  return (
    <Button component={Link} to={`/jobs/compare?ids=${ids.map(encodeURIComponent).join(",")}`} variant="default">
      {compare}
    </Button>
  );
}
