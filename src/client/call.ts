/** The types of a call: the request and the response of each operation. */
import type { CallOptions } from "./http.ts";
import type { METHODS, Operations, Problem, Variant } from "./types.ts";

/** The name of an operation: its path without `/api/v1/`. */
export type Operation = keyof Operations;
export type RequestOf<O extends Operation, V extends Variant = "A"> = Operations<V>[O]["request"];
export type AnswerOf<O extends Operation, V extends Variant = "A"> = Operations<V>[O]["answer"];

/** The arguments of a call. The request may be left out if it has no required field. */
export type Arguments<O extends Operation, V extends Variant> =
  Record<never, never> extends RequestOf<O, V>
    ? [request?: RequestOf<O, V>, options?: CallOptions]
    : [request: RequestOf<O, V>, options?: CallOptions];

export type Call<V extends Variant> = <O extends Operation>(
  operation: O,
  ...args: Arguments<O, V>
) => Promise<AnswerOf<O, V>>;

export type BatchOperation = Exclude<Operation, keyof typeof METHODS>;

/** The response of a batch for one operation: its own response, or a problem; `body.success` distinguishes them. */
export type BatchAnswer<O extends Operation, V extends Variant = "A"> = {
  readonly status: number;
  readonly body: AnswerOf<O, V> | Problem;
};
