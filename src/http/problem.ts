/**
 * Error answers: problem details (RFC 9457). A Problem holds only what the client may read: causes and stacks go to the
 * log.
 */
import { codeOf } from "../lib/reason.ts";

/** `path`: dotted ("" for the whole body); `message`: what to send instead. */
export type FieldError = { readonly path: string; readonly message: string };

export type ProblemExtras = {
  readonly errors?: readonly FieldError[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly members?: Readonly<Record<string, unknown>>;
};

/** `code` is snake_case and stable; each code has one title; `detail` is a sentence that says what to do. */
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
    return { ...body, ...this.extras.members };
  }
}

export function invalidRequest(errors: readonly FieldError[]): Problem {
  const named = errors.map((e) => (e.path === "" ? e.message : `${e.path}: ${e.message}`));
  const detail = `Correct the request and send it again. ${named.join("; ")}`;
  return new Problem(400, "invalid_request", "Bad request", detail, { errors });
}

export function tooLarge(limitBytes: number, what: "body" | "file" = "body"): Problem {
  return new Problem(
    413,
    "body_too_large",
    "Content too large",
    `Send a ${what} of at most ${limitBytes} bytes.`,
  );
}

/** `Connection: close`, because the rest of the request body stays unread. */
export function closing(problem: Problem): Problem {
  const headers = { ...problem.extras.headers, Connection: "close" };
  return new Problem(problem.status, problem.code, problem.title, problem.message, {
    ...problem.extras,
    headers,
  });
}

/** The file was deleted before it was opened. Else the error itself. */
export function notFoundIfDeleted(error: unknown): unknown {
  if (codeOf(error) !== "ENOENT") return error;
  return new Problem(
    404,
    "file_not_found",
    "File not found",
    "The file has just been deleted. Upload it again.",
  );
}
