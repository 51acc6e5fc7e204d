import { SegmentedControl, Stack, Text } from "@mantine/core";
import { useGet } from "../../api/queries";
import { Further } from "../../components/Further";
import { Panel } from "../../components/Panel";
import { text } from "../../text";
import classes from "./Searches.module.css";
import { ChoiceOf, LinesOf, NumberOf, useSearchForm } from "./search_fields";
import type { Early, TypedSearch } from "./search_form";

const words = text.searches.create;
const PRUNERS = Object.fromEntries(
  ["median", "percentile", "wilcoxon", "patient", "threshold"].map((name) => [name, name]),
);

/** What chooses values, and what ends trials before their end. */
export function AlgorithmPanel() {
  const { typed, set } = useSearchForm();
  const installed = useGet("/v1/algorithms", {}, { retry: false });
  const own = (installed.data?.algorithms ?? []).map((one) => [one.name, one.name]);
  return (
    <Panel title={words.algorithm}>
      <Stack gap="md">
        <div className={classes.fields}>
          <ChoiceOf
            field="sampler.name"
            label={words.sampler}
            searchable
            options={{ ...words.samplers, ...Object.fromEntries(own) }}
            value={typed.sampler}
            onChange={(sampler) => set({ sampler })}
          />
          <NumberOf field="sampler.seed" label={words.seed} value={typed.seed} onChange={(seed) => set({ seed })} />
          <LinesOf
            field="sampler.options"
            label={words.samplerOptions}
            hint={words.samplerOptionsHint}
            value={typed.samplerOptions}
            onChange={(samplerOptions) => set({ samplerOptions })}
          />
        </div>
        <div>
          <Text size="xs" fw={500} mb={4} component="p">
            {words.early}
          </Text>
          <div className={classes.scroll}>
            <SegmentedControl
              w="fit-content"
              aria-label={words.early}
              value={typed.early}
              onChange={(early) => set({ early: early as Early })}
              data={Object.entries(words.earlies).map(([value, label]) => ({ value, label }))}
            />
          </div>
          <Text size="xs" c="dimmed" mt={4}>
            {words.earlyHints[typed.early]}
          </Text>
        </div>
        {typed.early === "halving" && <Halving />}
        {typed.early === "pruner" && <Pruner />}
        {typed.early === "population" && <Members />}
      </Stack>
    </Panel>
  );
}

function Halving() {
  const { typed, set } = useSearchForm();
  return (
    <>
      <div className={classes.fields}>
        <ChoiceOf<TypedSearch["resource"]>
          field="halving.resource"
          label={words.resource}
          options={words.resources}
          value={typed.resource}
          onChange={(resource) => set({ resource })}
        />
        <NumberOf field="halving.min" label={words.first} value={typed.first} onChange={(first) => set({ first })} />
        <NumberOf field="halving.max" label={words.last} value={typed.last} onChange={(last) => set({ last })} />
        <NumberOf
          field="halving.factor"
          label={words.factor}
          value={typed.factor}
          onChange={(factor) => set({ factor })}
        />
      </div>
      <Further open={typed.order !== "rungs" || typed.brackets !== "1" || typed.rungSize !== ""}>
        <div className={classes.fields}>
          <ChoiceOf<TypedSearch["order"]>
            field="halving.order"
            label={words.order}
            options={words.orders}
            value={typed.order}
            onChange={(order) => set({ order })}
          />
          <NumberOf
            field="halving.brackets"
            label={words.brackets}
            hint={words.bracketsHint}
            value={typed.brackets}
            onChange={(brackets) => set({ brackets })}
          />
          <NumberOf
            field="halving.size"
            label={words.rungSize}
            placeholder={words.rungSizeHint}
            value={typed.rungSize}
            onChange={(rungSize) => set({ rungSize })}
          />
        </div>
      </Further>
    </>
  );
}

function Pruner() {
  const { typed, set } = useSearchForm();
  return (
    <div className={classes.fields}>
      <ChoiceOf
        field="pruner.name"
        label={words.pruner}
        options={PRUNERS}
        value={typed.pruner}
        onChange={(pruner) => set({ pruner })}
      />
      <LinesOf
        field="pruner.options"
        label={words.prunerOptions}
        hint={words.prunerOptionsHint}
        value={typed.prunerOptions}
        onChange={(prunerOptions) => set({ prunerOptions })}
      />
    </div>
  );
}

function Members() {
  const { typed, set } = useSearchForm();
  const { fraction, change, resample } = typed;
  return (
    <>
      <div className={classes.fields}>
        <NumberOf field="population.size" label={words.size} value={typed.size} onChange={(size) => set({ size })} />
        <NumberOf
          field="population.every"
          label={words.every}
          value={typed.every}
          onChange={(every) => set({ every })}
        />
        <NumberOf
          field="population.max"
          label={words.epochs}
          hint={words.epochsHint}
          value={typed.epochs}
          onChange={(epochs) => set({ epochs })}
        />
      </div>
      <Further open={fraction !== "0.25" || change !== "1.2" || resample !== "0.25"}>
        <div className={classes.fields}>
          <NumberOf
            decimal
            field="population.fraction"
            label={words.fraction}
            hint={words.fractionHint}
            value={fraction}
            onChange={(next) => set({ fraction: next })}
          />
          <NumberOf
            decimal
            field="population.factor"
            label={words.change}
            hint={words.changeHint}
            value={change}
            onChange={(next) => set({ change: next })}
          />
          <NumberOf
            decimal
            field="population.resample"
            label={words.resample}
            hint={words.resampleHint}
            value={resample}
            onChange={(next) => set({ resample: next })}
          />
        </div>
      </Further>
    </>
  );
}
