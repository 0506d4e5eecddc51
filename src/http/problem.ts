/**
 * Errors as they leave the hub: RFC 9457 problems.
 *
 * A Problem is thrown by whoever finds the fault and turned into an answer in one place (listener.ts).
 * It carries only what the caller may read: causes and stacks go to the log, never in here.
 */
import { codeOf } from "../lib/reason.ts";

/** One bad field of a request: where it stands (dotted, "" for the whole body) and what to do about it. */
export type FieldError = { readonly path: string; readonly message: string };

/** What a Problem may carry beside its code and sentence. */
export type ProblemExtras = {
  readonly errors?: readonly FieldError[];
  readonly headers?: Readonly<Record<string, string>>;
};

/** An error answer: HTTP status, a stable snake_case code, a title per code and a sentence that says what to do. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly extras: ProblemExtras;

  constructor(status: number, code: string, title: string, detail: string, extras: ProblemExtras = {}) {
    super(detail);
    this.name = "Problem";
    this.status = status;
    this.code = code;
    this.title = title;
    this.extras = extras;
  }

  /** The body of the answer (RFC 9457 members, then the hub's own). */
  toJSON(): Record<string, unknown> {
    const body: Record<string, unknown> = {
      type: `urn:luxhub:problem:${this.code}`,
      title: this.title,
      status: this.status,
      detail: this.message,
      success: false,
      error: this.code,
    };
    if (this.extras.errors) body["errors"] = this.extras.errors;
    return body;
  }
}

/** 400: the request cannot be read as what the endpoint takes; every bad field is named at once. */
export function invalidRequest(errors: readonly FieldError[]): Problem {
  const named = errors.map((e) => (e.path === "" ? e.message : `${e.path}: ${e.message}`));
  const detail = `Correct the request and send it again. ${named.join("; ")}`;
  return new Problem(400, "invalid_request", "Bad request", detail, { errors });
}

/** 413: the body, or the file in it, is larger than the endpoint takes. */
export function tooLarge(limitBytes: number, what: "body" | "file" = "body"): Problem {
  return new Problem(
    413,
    "body_too_large",
    "Content too large",
    `Send a ${what} of at most ${limitBytes} bytes.`,
  );
}

/** The same problem, asking for the connection to be closed after it: what is left of the body stays unread. */
export function closing(problem: Problem): Problem {
  const headers = { ...problem.extras.headers, Connection: "close" };
  return new Problem(problem.status, problem.code, problem.title, problem.message, {
    ...problem.extras,
    headers,
  });
}

/** For a file that was there when it was looked at and is not when it is opened, 404; any other error as it is. */
export function goneOr(error: unknown): unknown {
  if (codeOf(error) !== "ENOENT") return error;
  return new Problem(
    404,
    "file_not_found",
    "File not found",
    "The file has just been deleted. Upload it again.",
  );
}
