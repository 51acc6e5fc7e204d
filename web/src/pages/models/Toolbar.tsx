import { TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useAddress } from "../../components/useAddress";
import { counted } from "../../format/format";
import { text } from "../../text";
import classes from "./models.module.css";

const words = text.models;

/** The search of a list, which stands in the address of the page, and how many rows there are. */
export function Toolbar({ rows, noun }: { rows: number; noun: string }) {
  const address = useAddress();
  return (
    <div className={classes.bar}>
      <TextInput
        type="search"
        className={classes.find}
        aria-label={words.find}
        placeholder={words.find}
        leftSection={<IconSearch size={14} aria-hidden />}
        value={address.get("q") ?? ""}
        onChange={(event) => address.set({ q: event.currentTarget.value })}
      />
      <span className="dim num" aria-live="polite">
        {counted(rows, noun)}
      </span>
    </div>
  );
}
