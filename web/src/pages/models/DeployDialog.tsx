import { NumberInput, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { useChange } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { Problem } from "../../components/Notice";
import { text } from "../../text";
import type { Training } from "./lists";
import { Buttons } from "./ModelDialog";
import classes from "./models.module.css";
import { useFocusWrong, wrongOf } from "./wrong";

const words = text.models.deploy;

/** Makes an endpoint of what a training has learned, or a new version of one that is there. */
export function DeployDialog({ training, onClose }: { training: Training; onClose: () => void }) {
  const [name, setName] = useState(training.model);
  const [min, setMin] = useState(0);
  const [max, setMax] = useState(1);
  const navigate = useNavigate();
  const deploy = useChange("post", "/v1/endpoints/{name}/versions", {
    onSuccess: () => navigate(`/endpoints/${encodeURIComponent(name.trim())}`),
  });
  const { wrong, rest } = wrongOf(deploy.error, /^(name|kernel_min|kernel_max)$/);
  const ref = useFocusWrong(deploy.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const body = { job: training.job_id, kernel_min: min, kernel_max: max };
    deploy.mutate({ params: { path: { name: name.trim() } }, body });
  };
  return (
    <Dialog
      opened
      onClose={onClose}
      title={<span className="wrap">{words.title(`${training.model} › ${training.name}`)}</span>}
    >
      <form ref={ref} onSubmit={submit} noValidate>
        <Stack gap="lg">
          <TextInput
            label={words.name}
            description={words.nameHint}
            required
            maxLength={50}
            spellCheck={false}
            data-autofocus
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={wrong("name")}
          />
          <div className={classes.fields}>
            <NumberInput
              label={words.min}
              description={words.minHint}
              min={0}
              max={4096}
              clampBehavior="none"
              value={min}
              onChange={(value) => setMin(Number(value))}
              error={wrong("kernel_min")}
            />
            <NumberInput
              label={words.max}
              min={1}
              max={4096}
              clampBehavior="none"
              value={max}
              onChange={(value) => setMax(Number(value))}
              error={wrong("kernel_max")}
            />
          </div>
          {rest !== null && <Problem error={rest} />}
          <Buttons onClose={onClose} action={words.start} pending={deploy.isPending} disabled={name.trim() === ""} />
        </Stack>
      </form>
    </Dialog>
  );
}
