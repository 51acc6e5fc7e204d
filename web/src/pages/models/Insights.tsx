import { Button, Group } from "@mantine/core";
import { IconBulb } from "@tabler/icons-react";
import { useState } from "react";
import { useGet } from "../../api/queries";
import { useMay } from "../../app/session";
import { measure } from "../../format/format";
import { text } from "../../text";
import type { Training } from "./lists";
import classes from "./models.module.css";
import { TrainDialog } from "./TrainDialog";

const words = text.models.training;

/** What the course of a training suggests, in the server's sentences, and what leads there. */
export function Insights({ training, live }: { training: Training; live: boolean }) {
  const [numbers, setNumbers] = useState<Record<string, string> | null>(null);
  const mayTrain = useMay("models:write");
  const params = { path: { name: training.model, training: training.name } };
  const insights = useGet(
    "/v1/models/{name}/trainings/{training}/insights",
    { params },
    { refetchInterval: live ? 5000 : false, retry: false }, // made of metrics, which are no events
  );
  const hints = insights.data?.hints ?? [];
  if (hints.length === 0) return null;
  return (
    <section aria-label={words.hints} className={classes.column}>
      {hints.map((hint) => (
        <div key={`${hint.kind} ${hint.series}`} className={classes.hint}>
          <p>
            <IconBulb size={18} aria-hidden />
            <span className="wrap">{hint.sentence}</span>
          </p>
          <Group gap="xs">
            {mayTrain && hint.parameter != null && hint.value != null && (
              <Button
                variant="default"
                onClick={() => setNumbers({ [hint.parameter ?? ""]: String(Number(hint.value?.toPrecision(3))) })}
              >
                {words.trainWith(
                  (text.models.names[hint.parameter] ?? hint.parameter).toLowerCase(),
                  measure(hint.value),
                )}
              </Button>
            )}
          </Group>
        </div>
      ))}
      {numbers !== null && <TrainDialog model={training.model} numbers={numbers} onClose={() => setNumbers(null)} />}
    </section>
  );
}
