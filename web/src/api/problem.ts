import type { components } from "./schema";

/** An error of the server, in its own words; or one of the way to it. */
export class Refused extends Error {
  readonly status: number;
  /** What is wrong with which field of what was sent. */
  readonly problems: readonly { field: string; message: string }[];
  /** Seconds after which to ask again, if the server said so. */
  readonly retryAfter: number | null;

  constructor(status: number, message: string, problems: Refused["problems"] = [], retryAfter: number | null = null) {
    super(message);
    this.name = "Refused";
    this.status = status;
    this.problems = problems;
    this.retryAfter = retryAfter;
  }

  /** What is wrong with one field, in a sentence; null if nothing is. */
  of(field: string): string | null {
    const found = this.problems.filter((problem) => problem.field === field).map((problem) => problem.message);
    return found.length > 0 ? found.join("; ") : null;
  }
}

/** No answer came, or one that says that the server is not there now. */
export class Unreachable extends Refused {
  constructor(status = 0, message = "the server does not answer") {
    super(status, message);
    this.name = "Unreachable";
  }
}

type Details = Partial<components["schemas"]["ProblemDetails"]>;

/** What a refusal says: problems of RFC 9457, or whatever else came. */
export async function problemOf(response: Response): Promise<Refused> {
  let details: Details = {};
  try {
    details = (await response.json()) as Details;
  } catch {
    // a proxy's page, or nothing
  }
  const message = typeof details.detail === "string" ? details.detail : `the answer was ${response.status}`;
  if (response.status === 502 || response.status === 503 || response.status === 504) {
    return new Unreachable(response.status, message);
  }
  const after = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  const problems = Array.isArray(details.problems) ? details.problems : [];
  return new Refused(response.status, message, problems, Number.isNaN(after) ? null : after);
}
