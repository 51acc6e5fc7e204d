import { Button, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Panel } from "../../components/Panel";
import { text } from "../../text";
import { Remove } from "./Parameters";
import classes from "./Searches.module.css";
import { ChoiceOf, TextOf, useSearchForm } from "./search_fields";
import {
  type Direction,
  NEW_CONSTRAINT,
  NEW_OBJECTIVE,
  nextKey,
  type Reading,
  type TypedConstraint,
  type TypedObjective,
} from "./search_form";

const words = text.searches.create;
const MOST = 10;

/** What is better, and what the best has to keep. */
export function GoalsPanel() {
  const { typed, set } = useSearchForm();
  const { objectives, constraints } = typed;
  return (
    <Panel title={words.objective}>
      <Stack gap="sm">
        {objectives.map((one, index) => (
          <Objective
            key={one.key}
            objective={one}
            hint={index === 0 ? words.metricHint : undefined}
            onChange={(part) =>
              set({ objectives: objectives.map((other) => (other.key === one.key ? { ...other, ...part } : other)) })
            }
            onRemove={
              objectives.length > 1
                ? () => set({ objectives: objectives.filter((other) => other.key !== one.key) })
                : null
            }
          />
        ))}
        {constraints.map((one) => (
          <Constraint
            key={one.key}
            constraint={one}
            onChange={(part) =>
              set({ constraints: constraints.map((other) => (other.key === one.key ? { ...other, ...part } : other)) })
            }
            onRemove={() => set({ constraints: constraints.filter((other) => other.key !== one.key) })}
          />
        ))}
        <div className={classes.adds}>
          <Button
            variant="default"
            leftSection={<IconPlus size={16} />}
            disabled={objectives.length >= MOST}
            onClick={() => set({ objectives: [...objectives, { ...NEW_OBJECTIVE, key: nextKey(objectives) }] })}
          >
            {words.addObjective}
          </Button>
          <Button
            variant="default"
            leftSection={<IconPlus size={16} />}
            disabled={constraints.length >= MOST}
            onClick={() => set({ constraints: [...constraints, { ...NEW_CONSTRAINT, key: nextKey(constraints) }] })}
          >
            {words.addConstraint}
          </Button>
        </div>
      </Stack>
    </Panel>
  );
}

interface ObjectiveProps {
  objective: TypedObjective;
  hint: string | undefined;
  onChange: (part: Partial<TypedObjective>) => void;
  onRemove: (() => void) | null;
}

function Objective({ objective, hint, onChange, onRemove }: ObjectiveProps) {
  const field = (name: string) => `objectives.${objective.key}.${name}`;
  return (
    <div className={classes.goal}>
      <TextOf
        field={field("metric")}
        label={words.metric}
        hint={hint}
        required
        value={objective.metric}
        onChange={(metric) => onChange({ metric })}
      />
      <ChoiceOf<Direction>
        field={field("direction")}
        label={words.direction}
        options={words.directions}
        value={objective.direction}
        onChange={(direction) => onChange({ direction })}
      />
      <ChoiceOf<Reading>
        field={field("reading")}
        label={words.reading}
        options={words.readings}
        value={objective.reading}
        onChange={(reading) => onChange({ reading })}
      />
      {onRemove && <Remove label={words.removeObjective(objective.metric)} onClick={onRemove} />}
    </div>
  );
}

interface ConstraintProps {
  constraint: TypedConstraint;
  onChange: (part: Partial<TypedConstraint>) => void;
  onRemove: () => void;
}

function Constraint({ constraint, onChange, onRemove }: ConstraintProps) {
  const field = (name: string) => `constraints.${constraint.key}.${name}`;
  return (
    <div className={classes.bound}>
      <TextOf
        field={field("metric")}
        label={words.bounded}
        value={constraint.metric}
        onChange={(metric) => onChange({ metric })}
      />
      <ChoiceOf<TypedConstraint["side"]>
        field={field("side")}
        label={words.side}
        options={words.sides}
        value={constraint.side}
        onChange={(side) => onChange({ side })}
      />
      <TextOf
        field={field("bound")}
        label={words.bound}
        value={constraint.bound}
        onChange={(bound) => onChange({ bound })}
      />
      <ChoiceOf<Reading>
        field={field("reading")}
        label={words.reading}
        options={words.readings}
        value={constraint.reading}
        onChange={(reading) => onChange({ reading })}
      />
      <Remove label={words.removeConstraint(constraint.metric)} onClick={onRemove} />
    </div>
  );
}
