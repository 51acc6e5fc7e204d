import { Select } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../api/client";
import { useGet } from "../api/queries";

interface Props {
  label: string;
  description: string;
  value: string;
  onChange: (job: string) => void;
  /** Only jobs in these states. */
  states?: Schemas["JobState"][];
  /** What is said if there is none. */
  nothing?: string;
  error?: string | null;
}

/** A job that was submitted, found by a part of its id or name. Kernels of endpoints are left out. */
export function JobField({ label, description, value, onChange, states, nothing, error }: Props) {
  const [search, setSearch] = useState("");
  const isSearched = search !== "" && !search.startsWith(value === "" ? "\0" : value);
  const query = { limit: 50, ...(states && { state: states }), ...(isSearched && { q: search.slice(0, 100) }) };
  const jobs = useGet("/v1/jobs/rows", { params: { query } }, { keepPrevious: true });
  const found = jobs.data?.rows.filter((job) => job.kind !== "endpoint") ?? [];
  const data = found.map((job) => ({ value: job.id, label: `${job.id} ${job.name}` }));
  if (value !== "" && !data.some((one) => one.value === value)) data.unshift({ value, label: value });
  return (
    <Select
      label={label}
      description={description}
      searchable
      required
      data={data}
      filter={({ options }) => options}
      value={value || null}
      onChange={(job) => onChange(job ?? "")}
      onSearchChange={setSearch}
      {...(nothing && { nothingFoundMessage: nothing })}
      error={error}
    />
  );
}
