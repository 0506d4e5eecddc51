/** A receiver of webhooks on loopback: records what comes, and answers as the test says. */
import type { Post } from "../../src/http/outbound.ts";
import { HANG_MS } from "./hang.ts";

/** The URL that tests give a webhook; its host names nothing. */
export const RECEIVER_URL = "https://receiver.test/hook";

export type Received = {
  readonly path: string;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
  readonly text: string;
};

type Answering = (received: Received, n: number) => Response | Promise<Response>;

export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Answers the request with this number, from 1. */
  answer: Answering = () => new Response(null, { status: 204 });
  /** Nothing listens: connections are refused. */
  isAway = false;
  readonly port: number;
  readonly #hostname: string;
  #server: Bun.Server<undefined>;
  readonly #waiting = new Set<() => void>();
  #running = 0;
  mostAtOnce = 0;

  constructor(hostname = "127.0.0.1") {
    this.#hostname = hostname;
    this.#server = this.#open(0);
    this.port = this.#server.port ?? 0;
  }

  #open(port: number): Bun.Server<undefined> {
    return Bun.serve({
      hostname: this.#hostname,
      port,
      fetch: async (request) => {
        this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#running);
        try {
          const text = await request.text();
          const body = JSON.parse(text) as Record<string, unknown>;
          const received = { path: new URL(request.url).pathname, headers: request.headers, body, text };
          const n = this.received.push(received);
          for (const wake of this.#waiting) wake();
          return await this.answer(received, n);
        } finally {
          this.#running--;
        }
      },
    });
  }

  /** Killed: what is under way is cut off, and nothing listens. */
  async kill(): Promise<void> {
    await this.#server.stop(true);
  }

  /** Started again on its port, with what it had received. */
  restart(): void {
    this.#server = this.#open(this.port);
  }

  get post(): Post {
    return async ({ url, headers, body, signal }) => {
      if (this.isAway) return { status: null, error: "connection refused" };
      const { pathname } = new URL(url);
      try {
        const response = await fetch(`http://127.0.0.1:${this.port}${pathname}`, {
          method: "POST",
          headers,
          body,
          signal,
          redirect: "manual",
        });
        return { status: response.status, retryAfter: response.headers.get("retry-after") };
      } catch {
        return { status: null, error: "connection reset" };
      }
    };
  }

  async until(isEnough: (received: readonly Received[]) => boolean): Promise<readonly Received[]> {
    while (!isEnough(this.received)) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const got = (): string => this.received.map(({ text }) => text).join("\n");
      const timer = setTimeout(() => reject(new Error(`not enough was received:\n${got()}`)), HANG_MS);
      this.#waiting.add(resolve);
      await promise.finally(() => this.#waiting.delete(resolve));
      clearTimeout(timer);
    }
    return this.received;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

export const idOf = ({ headers }: Received): string => headers.get("webhook-id") ?? "";
export const typeOf = ({ body }: Received): unknown => body["type"];
