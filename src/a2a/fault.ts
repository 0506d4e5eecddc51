/** The errors of A2A (its specification, 5.4), and how each binding encodes them. */
import {
  type A2AError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  VersionNotSupportedError,
  restStatusFor,
  toJsonRpcError,
  toRestErrorBody,
} from "@a2a-js/sdk/errors";
import { problemOf } from "../api/error-table.ts";
import type { FieldError } from "../http/problem.ts";

const KINDS = {
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  VersionNotSupportedError,
} as const;

export class Fault extends Error {
  override readonly name = "Fault";
  readonly error: A2AError;
  readonly fields: readonly FieldError[];

  constructor(kind: keyof typeof KINDS, message: string, fields: readonly FieldError[] = []) {
    super(message);
    this.error = new KINDS[kind](message);
    this.fields = fields;
  }
}

export function malformed(path: string, message: string): Fault {
  return new Fault("RequestMalformedError", `${path}: ${message}`, [{ path, message }]);
}

/**
 * The error for each refusal of the hub. The other refusals are answered as problems: they concern the caller, or the
 * hub.
 */
const BY_CODE: Readonly<Record<string, keyof typeof KINDS>> = {
  invalid_request: "RequestMalformedError",
  idempotency_key_reused: "RequestMalformedError",
  task_files_limit: "RequestMalformedError",
  task_not_found: "TaskNotFoundError",
  node_offline: "UnsupportedOperationError",
  node_draining: "UnsupportedOperationError",
  task_not_ready: "UnsupportedOperationError",
  question_answered: "UnsupportedOperationError",
  question_timed_out: "UnsupportedOperationError",
  task_completed: "TaskNotCancelableError",
  task_failed: "TaskNotCancelableError",
};

/** The fault that an error is to a client of A2A; null for one that HTTP answers. */
export function faultOf(error: unknown): Fault | null {
  if (error instanceof Fault) return error;
  const problem = problemOf(error);
  const kind = problem && BY_CODE[problem.code];
  if (!kind) return null;
  if (problem.code === "idempotency_key_reused")
    return malformed(
      "message.messageId",
      "was used with the hub's former secret: send the message with another id",
    );
  return new Fault(kind, problem.message, problem.extras.errors);
}

/** As google.rpc.BadRequest, which both bindings carry. */
function violations({
  fields,
}: Fault): readonly { readonly "@type": string; readonly [name: string]: unknown }[] {
  if (fields.length === 0) return [];
  const fieldViolations = fields.map(({ path, message }) => ({ field: path, description: message }));
  return [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations }];
}

/** The `error` of a JSON-RPC response. */
export function rpcErrorOf(fault: Fault): { readonly code: number; readonly message: string } {
  const { code, message, data = [] } = toJsonRpcError(fault.error);
  return { code, message, ...{ data: [...data, ...violations(fault)] } };
}

export function httpErrorOf(fault: Fault): { readonly status: number; readonly body: unknown } {
  const status = restStatusFor(fault.error);
  const { error } = toRestErrorBody(fault.error, status);
  return { status, body: { error: { ...error, details: [...error.details, ...violations(fault)] } } };
}
