import { Button, Group, Select, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { useGet } from "../../api/queries";
import { DropFiles } from "../../components/DropFiles";
import { type Chosen, scriptsOf } from "../../files/chosen";
import { text } from "../../text";
import { ChoiceField, TextField, useForm } from "./form";
import classes from "./Submit.module.css";

const words = text.submission;

interface Props {
  chosen: Chosen | null;
  onChoose: (chosen: Chosen | null) => void;
  /** The job whose code is run again. */
  from: string | null;
  error: string | null;
  disabled: boolean;
}

/** Where the code comes from, which script of it runs, and with what. */
export function Code({ chosen, onChoose, from, error, disabled }: Props) {
  const { typed } = useForm();
  const scripts = chosen === null ? [] : scriptsOf(chosen);
  return (
    <>
      {from === null ? (
        <>
          <DropFiles
            label={words.code}
            chosen={chosen}
            onChoose={onChoose}
            ignoring
            error={error}
            hint={words.codeHint}
            disabled={disabled}
          />
          {chosen === null && <EarlierJob />}
        </>
      ) : (
        <Group justify="space-between" gap="xs">
          <Text size="sm">{words.ofJob}</Text>
          <Button component={Link} to="/submit" variant="default">
            {words.otherCode}
          </Button>
        </Group>
      )}
      <div className={classes.pair}>
        {scripts.length > 0 ? (
          <ChoiceField
            name="script"
            searchable={scripts.length > 10}
            options={scripts.map((name) => ({ value: name, label: name }))}
            placeholder={typed.script === undefined ? words.whichScript : undefined}
          />
        ) : (
          <TextField name="script" placeholder="train.py" />
        )}
        <TextField name="args" placeholder="--epochs 20" />
      </div>
    </>
  );
}

function EarlierJob() {
  const navigate = useNavigate();
  const [searched, setSearched] = useState("");
  const [asked] = useDebouncedValue(searched, 250);
  const rows = useGet(
    "/v1/jobs/rows",
    { params: { query: { q: asked, limit: 30, trials: false } } },
    { keepPrevious: true },
  );
  return (
    <Select
      label={words.earlier}
      placeholder={words.earlierPlaceholder}
      searchable
      searchValue={searched}
      onSearchChange={setSearched}
      filter={({ options }) => options}
      value={null}
      data={(rows.data?.rows ?? []).map((row) => ({ value: row.id, label: `${row.id}  ${row.name}  ${row.owner}` }))}
      onChange={(id) => id && navigate(`/submit?from=${encodeURIComponent(id)}`)}
    />
  );
}
