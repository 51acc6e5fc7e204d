import { Anchor, Code, Group, Text } from "@mantine/core";
import { CopyButton } from "../../components/Copy";
import { percent } from "../../format/format";
import { text } from "../../text";
import { useForm } from "./form";
import classes from "./Parts.module.css";
import { advise, GOOD, sizesOf } from "./virtual_workers";

const words = text.submission.advice;
const MOST_BARS = 64;
/** With more bars than this there is no room for numbers at each. */
const MOST_NAMED = 16;

/** How a V that was asked for divides over the sizes that the job may have: a bar for each, and which V is even at more. */
export function Parts() {
  const { typed, set } = useForm();
  const max = wholeOf(typed.max_tasks) ?? 1;
  const min = Math.min(wholeOf(typed.min_tasks) ?? 1, max);
  const parts = wholeOf(typed.virtual_workers);
  if (parts === null) return null; // the script's batch decides, which nobody knows here
  const sizes = sizesOf(parts, max);
  if (max < 2 || sizes.length === 0) return null;
  const meant = sizes.filter((size) => size.workers >= min);
  const [first, ...others] = meant;
  const worst = others.reduce((low, size) => (size.efficiency < (low?.efficiency ?? 1) ? size : low), first);
  const advice = advise(parts, min, max);
  const plan = `pliant plan --min ${min} --max ${max} --virtual-workers ${parts} --batch-size B`;
  return (
    <div className={classes.parts}>
      {sizes.length <= MOST_BARS && (
        <>
          <Text size="xs" c="dimmed" aria-hidden>
            {words.title}
          </Text>
          <Bars sizes={sizes} min={min} />
        </>
      )}
      <Text size="sm">
        {worst !== undefined && worst.efficiency < GOOD
          ? words.worst(worst.workers, percent(worst.efficiency))
          : words.even(parts)}{" "}
        {advice !== null && (
          <>
            {words.better(advice.parts, listed(advice.even))}{" "}
            <Anchor
              component="button"
              type="button"
              size="sm"
              onClick={() => set("virtual_workers", String(advice.parts))}
            >
              {words.use(advice.parts)}
            </Anchor>
          </>
        )}
      </Text>
      {advice !== null && (
        <Group gap={4} wrap="nowrap" className={classes.plan}>
          <Text size="xs" c="dimmed" className={classes.why}>
            {words.plan}
          </Text>
          <Code className="cut" title={plan}>
            {plan}
          </Code>
          <CopyButton value={plan} />
        </Group>
      )}
    </div>
  );
}

function Bars({ sizes, min }: { sizes: ReturnType<typeof sizesOf>; min: number }) {
  const named = sizes.length <= MOST_NAMED;
  return (
    <ol className={classes.bars} aria-label={words.title} data-named={named}>
      {sizes.map(({ workers, efficiency, parts }) => {
        const said = words.size(workers, percent(efficiency), words.parts(parts[0], parts[1]));
        return (
          <li key={workers} title={said} data-meant={workers >= min} data-good={efficiency >= GOOD}>
            <span className="unseen">{said}</span>
            {named && (
              <span className={classes.share} aria-hidden>
                {Math.round(efficiency * 100)}
              </span>
            )}
            <span className={classes.bar} style={{ height: Math.max(2, Math.round(efficiency * 48)) }} aria-hidden />
            {named && (
              <span className={classes.workers} aria-hidden>
                {workers}
              </span>
            )}
          </li>
        );
      })}
    </ol>
  );
}

function listed(numbers: readonly number[]): string {
  const shown = numbers.slice(0, 12).map(String);
  if (numbers.length > 12) return `${shown.join(", ")} …`;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")}${words.and}${shown.at(-1)}`;
}

function wholeOf(typed: string | undefined): number | null {
  const value = Number(typed);
  return typed !== undefined && typed.trim() !== "" && Number.isInteger(value) && value >= 1 && value <= 4096
    ? value
    : null;
}
