/** Reads server-sent events from the body of an answer: whole events, in order, with whatever field they have. */

export interface SentEvent {
  id: string;
  kind: string;
  data: string;
}

/** Puts chunks of text together and gives the events that are whole. A comment is a sign of life and gives nothing. */
export class EventParser {
  #rest = "";

  push(chunk: string): SentEvent[] {
    this.#rest += chunk;
    const events: SentEvent[] = [];
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(this.#rest);
      if (end === null) return events;
      const event = parse(this.#rest.slice(0, end.index));
      this.#rest = this.#rest.slice(end.index + end[0].length);
      if (event !== null) events.push(event);
    }
  }
}

function parse(block: string): SentEvent | null {
  const event: SentEvent = { id: "", kind: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    if (colon === 0 || line === "") continue;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    if (field === "id") event.id = value;
    if (field === "event") event.kind = value;
  }
  if (data.length === 0) return null;
  event.data = data.join("\n");
  return event;
}
