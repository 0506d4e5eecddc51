/**
 * Replaces secrets of the worker's environment in everything that a task sends to the hub or to the log, also across the
 * pieces of a stream. A secret is found as it is, and as JSON writes it in a string. Must not: find a secret that the
 * command has encoded in another way, such as base64.
 */
import type { Environment } from "../config.ts";

/** The names of variables whose values are secrets. */
const SECRET_NAME = /(?:KEY|TOKEN|SECRET|PASSWORD)$/i;
/** A shorter value is too likely a word of the output. */
const SECRET_MIN_CHARS = 8;
const MASKED = Buffer.from("***");
const NO_BYTES: Uint8Array<ArrayBuffer> = new Uint8Array(0);

export type MaskedStream = {
  /** Returns what can be passed on: a possible beginning of a secret waits. */
  readonly add: (bytes: Uint8Array) => Uint8Array<ArrayBuffer>;
  readonly end: () => Uint8Array<ArrayBuffer>;
};

export class SecretMask {
  /** The longest first: one may be the beginning of another. */
  readonly #secrets: readonly Buffer[];

  constructor(values: Iterable<string>) {
    // Also line by line: in a patch each line has a sign before it. What says only the kind of a key is no secret.
    const forms = [...values]
      .flatMap((value) => [value, ...value.split(/[\r\n]+/).filter((line) => !line.startsWith("-----"))])
      .filter((value) => value.length >= SECRET_MIN_CHARS)
      .flatMap((value) => [value, JSON.stringify(value).slice(1, -1)]);
    this.#secrets = [...new Set(forms)]
      .map((form) => Buffer.from(form))
      .toSorted((a, b) => b.length - a.length);
  }

  get isEmpty(): boolean {
    return this.#secrets.length === 0;
  }

  text(text: string): string {
    return this.isEmpty ? text : Buffer.from(this.bytes(Buffer.from(text))).toString();
  }

  /** Returns a JSON value in which no string, and no name of a field, has a secret. */
  value<T>(value: T): T {
    return this.isEmpty ? value : (this.#masked(value) as T); // the same shape
  }

  #masked(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((item: unknown) => this.#masked(item));
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
      return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [this.text(name), this.#masked(item)]),
    );
  }

  bytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const stream = this.stream();
    return joined([stream.add(bytes), stream.end()]);
  }

  stream(): MaskedStream {
    let waiting: Uint8Array = NO_BYTES;
    const pass = (bytes: Uint8Array, isEnd: boolean): Uint8Array<ArrayBuffer> => {
      const buffer = Buffer.from(waiting.length === 0 ? bytes : joined([waiting, bytes]));
      const passed: Uint8Array[] = [];
      let from = 0;
      for (;;) {
        const secret = this.#firstIn(buffer, from);
        if (secret === null || (!isEnd && this.#mayBeLonger(buffer.subarray(secret.position)))) break;
        passed.push(buffer.subarray(from, secret.position), MASKED);
        from = secret.position + secret.length;
      }
      const held = isEnd ? 0 : this.#beginningAtEnd(buffer.subarray(from));
      passed.push(buffer.subarray(from, buffer.length - held));
      waiting = new Uint8Array(buffer.subarray(buffer.length - held));
      return joined(passed);
    };
    return { add: (bytes) => pass(bytes, false), end: () => pass(NO_BYTES, true) };
  }

  transform(): TransformStream<Uint8Array, Uint8Array> {
    const stream = this.stream();
    return new TransformStream({
      transform: (piece, controller) => controller.enqueue(stream.add(piece)),
      flush: (controller) => controller.enqueue(stream.end()),
    });
  }

  #firstIn(bytes: Buffer, from: number): { readonly position: number; readonly length: number } | null {
    let first: { position: number; length: number } | null = null;
    for (const secret of this.#secrets) {
      const position = bytes.indexOf(secret, from);
      if (position !== -1 && (first === null || position < first.position))
        first = { position, length: secret.length };
    }
    return first;
  }

  /** Whether the bytes, which begin with a secret, may become a longer one. */
  #mayBeLonger(bytes: Buffer): boolean {
    return this.#secrets.some(
      (secret) => secret.length > bytes.length && secret.subarray(0, bytes.length).equals(bytes),
    );
  }

  /** How many of the last bytes may be the beginning of a secret. */
  #beginningAtEnd(bytes: Buffer): number {
    let held = 0;
    for (const secret of this.#secrets)
      for (let length = Math.min(secret.length - 1, bytes.length); length > held; length--)
        if (bytes.subarray(bytes.length - length).equals(secret.subarray(0, length))) held = length;
    return held;
  }
}

/** Of variables that are named like a secret, and of `names`. */
export function secretsIn(env: Environment, names: readonly string[]): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && (SECRET_NAME.test(name) || names.includes(name)) ? [value] : [],
  );
}

function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat(pieces));
}
