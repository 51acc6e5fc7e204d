import { Alert, Button, Group, NumberInput, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { refetch } from "../../api/cache";
import type { Schemas } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import { useCanChange } from "../../app/Connection";
import { useMay } from "../../app/session";
import { Answer, Problem } from "../../components/Notice";
import { Panel } from "../../components/Panel";
import { text } from "../../text";
import classes from "./Retention.module.css";
import { type Limit, type Limits, limitsOf, MATERIALS, type Material, rulesOf, sameLimits } from "./rules";

const words = text.settings.retention;
const DAYS = 36_500;
const GIGABYTES = 4e9;

/** How long what ended jobs left behind is kept. */
export function Retention() {
  const retention = useGet("/v1/retention", {}, { fresh: true });
  return (
    <Panel title={words.title}>
      <Answer query={retention} rows={5}>
        {(shown) => <Form shown={shown} />}
      </Answer>
    </Panel>
  );
}

function Form({ shown }: { shown: Schemas["RetentionView"] }) {
  const canChange = useCanChange();
  const now = limitsOf(shown.rules);
  const [wanted, setWanted] = useState<Limits | null>(null);
  const limits = wanted ?? now;
  const changed = wanted !== null && !sameLimits(wanted, now);
  const change = useChange("put", "/v1/retention", {
    onSuccess: () => {
      setWanted(null);
      notifications.show({ message: words.saved, color: "green" });
    },
    onSettled: () => refetch((path) => path === "/v1/retention"),
  });
  const stale = change.error?.status === 412;
  const save = () =>
    change.mutate({
      params: { header: { "if-match": `"${shown.revision}"` } },
      body: { rules: rulesOf(limits, shown.rules) },
    });
  return (
    <Stack gap="sm">
      <div className="dim">{words.hint}</div>
      <div>
        <div className={`${classes.row} ${classes.heads}`} aria-hidden>
          <span>{words.columns.what}</span>
          <span>{words.columns.age}</span>
          <span>{words.columns.size}</span>
        </div>
        {MATERIALS.map((material) => (
          <Row
            key={material}
            material={material}
            limit={limits[material]}
            now={stale ? now[material] : null}
            onChange={(limit) => setWanted({ ...limits, [material]: limit })}
          />
        ))}
      </div>
      {stale ? (
        <Alert color="yellow" variant="outline" role="alert">
          {words.stale}
        </Alert>
      ) : (
        change.error !== null && <Problem error={change.error} />
      )}
      {changed && (
        <Group gap="xs">
          <Button loading={change.isPending} disabled={!canChange} onClick={save}>
            {words.save}
          </Button>
          <Button
            variant="default"
            onClick={() => {
              setWanted(null);
              change.reset();
            }}
          >
            {words.reset}
          </Button>
        </Group>
      )}
    </Stack>
  );
}

interface RowProps {
  material: Material;
  limit: Limit;
  /** What holds on the server, if it is not what was shown when one began. */
  now: Limit | null;
  onChange: (limit: Limit) => void;
}

function Row({ material, limit, now, onChange }: RowProps) {
  const canChange = useCanChange();
  const mayAudit = useMay("audit:read");
  const allowed = material !== "audit" || mayAudit;
  const name = words.names[material] ?? material;
  const told = (value: number | "", unit: string, own: number | "") =>
    now !== null && value !== own && words.now(value === "" ? words.unlimited : `${value}${unit}`);
  return (
    <div className={classes.row}>
      <div>
        <h3>{name}</h3>
        <div className="dim">
          {words.means[material]} {!allowed && words.administrators}
        </div>
      </div>
      <NumberInput
        aria-label={words.age(name)}
        placeholder={words.unlimited}
        suffix={words.days}
        min={0}
        max={DAYS}
        decimalScale={5}
        hideControls
        disabled={!canChange || !allowed}
        value={limit.days}
        description={now !== null ? told(now.days, words.days, limit.days) : null}
        inputWrapperOrder={["input", "description"]}
        onChange={(value) => onChange({ ...limit, days: numberOf(value) })}
      />
      {material === "audit" ? (
        <span className={classes.only}>{words.byAge}</span>
      ) : (
        <NumberInput
          aria-label={words.size(name)}
          placeholder={words.unlimited}
          suffix={words.gigabytes}
          min={0}
          max={GIGABYTES}
          decimalScale={5}
          hideControls
          disabled={!canChange}
          value={limit.gigabytes}
          description={now !== null ? told(now.gigabytes, words.gigabytes, limit.gigabytes) : null}
          inputWrapperOrder={["input", "description"]}
          onChange={(value) => onChange({ ...limit, gigabytes: numberOf(value) })}
        />
      )}
    </div>
  );
}

function numberOf(value: number | string): number | "" {
  return typeof value === "number" ? value : "";
}
