/** The types of a call: the request and the answer of each operation. */
import type { CallOptions } from "./http.ts";
import type { METHODS, Operations, Problem, Variant } from "./types.ts";

/** An operation is named by its path, without `/api/v1/`. */
export type Operation = keyof typeof METHODS;
export type RequestOf<O extends Operation, V extends Variant = "A"> = Operations<V>[O]["request"];
export type AnswerOf<O extends Operation, V extends Variant = "A"> = Operations<V>[O]["answer"];

/** The request may be left out where no field is required. */
export type Arguments<O extends Operation, V extends Variant> =
  Record<never, never> extends RequestOf<O, V>
    ? [request?: RequestOf<O, V>, options?: CallOptions]
    : [request: RequestOf<O, V>, options?: CallOptions];

/** Calls an operation. */
export type Call<V extends Variant> = <O extends Operation>(
  operation: O,
  ...args: Arguments<O, V>
) => Promise<AnswerOf<O, V>>;

/** The operations that a batch may hold. */
export type BatchOperation = {
  [O in Operation]: (typeof METHODS)[O] extends "POST" ? O : never;
}[Operation];

/** What a batch answers for one operation: its answer, or a problem; `body.success` tells them apart. */
export type BatchAnswer<O extends Operation, V extends Variant = "A"> = {
  readonly status: number;
  readonly body: AnswerOf<O, V> | Problem;
};
