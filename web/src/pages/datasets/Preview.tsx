import { SegmentedControl, Text } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { Answer } from "../../components/Notice";
import { useAddress } from "../../components/useAddress";
import { text } from "../../text";
import classes from "./Datasets.module.css";

const words = text.datasets;
const MOST = 50;

/** What a data set looks like: pictures of every class, or the first rows. */
export function Preview({ name, state }: { name: string; state: string | undefined }) {
  const address = useAddress();
  const split = address.get("split");
  const preview = useGet(
    "/v1/datasets/{name}/preview",
    { params: { path: { name }, query: { limit: MOST, ...(split !== null && { split }) } } },
    { enabled: state !== "importing", keepPrevious: true },
  );
  if (state === "importing") return null;
  return (
    <Answer query={preview} rows={3} height={120}>
      {(data) => (
        <>
          {data.splits.length > 1 && (
            <SegmentedControl
              style={{ justifySelf: "start", alignSelf: "flex-start" }}
              aria-label={words.previewOf}
              data={data.splits.map((one) => ({ value: one, label: words.splitNames[one] ?? one }))}
              value={data.split}
              onChange={(next) => address.set({ split: next === data.splits[0] ? null : next })}
            />
          )}
          {data.kind === "images" && <Pictures images={data.images} />}
          {data.kind === "table" && <Rows columns={data.columns} rows={data.rows} />}
          {data.kind === "none" && <Text c="dimmed">{data.reason}</Text>}
        </>
      )}
    </Answer>
  );
}

function Pictures({ images }: { images: readonly Schemas["Thumbnail"][] }) {
  return (
    <ul className={classes.pictures} aria-label={words.preview}>
      {images.map((image) => (
        <li key={`${image.label}/${image.name}`}>
          <img
            src={`data:image/png;base64,${image.png}`}
            alt={words.thumbnail(image.label, image.name, image.width, image.height)}
            title={words.thumbnail(image.label, image.name, image.width, image.height)}
            loading="lazy"
          />
          <span className="cut" style={{ maxWidth: "100%" }} title={image.label}>
            {image.label}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Rows({ columns, rows }: { columns: readonly string[]; rows: readonly (readonly string[])[] }) {
  const numeric = columns.map((_, index) => rows.length > 0 && rows.every((row) => isNumber(row[index] ?? "")));
  return (
    <section className={classes.table} tabIndex={0} aria-label={words.preview}>
      <table>
        <thead>
          <tr>
            {columns.map((column, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns may be called alike
              <th key={index} scope="col" className={numeric[index] ? "num" : "cut"} title={column}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, line) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows may be alike
            <tr key={line}>
              {columns.map((_, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: cells may be alike
                <td key={index} className={numeric[index] ? "num" : "cut"} title={row[index]}>
                  {row[index]}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function isNumber(cell: string): boolean {
  return cell.trim() === "" || Number.isFinite(Number(cell));
}
