/**
 * Callers of a fleet of hubs through its proxy, which behave as nodes should: they retry refused calls, and calls with an
 * unknown outcome where that is safe. Also readers of the event log while hubs and servers stop and start.
 */
import { type Answer, SECRET, listOf, objectOf } from "../../test/e2e/program.ts";
import { SseReader } from "../../test/support/sse.ts";
import { SAFE_BY_THEMSELVES } from "./crash-writer.ts";

const PAUSE_MS = 20;

export class Way {
  readonly api: string;
  /** Answers 503, after which the same was asked again, and those of them with no Retry-After. */
  unavailable = 0;
  impolite = 0;
  /** Broken connections, 502 and 504 of the proxy, and outcome_unknown: what was asked may be done. */
  unknown = 0;
  #isOpen = true;

  /** `url` is the proxy's. */
  constructor(url: string) {
    this.api = `${url}/api/v1`;
  }

  /** From here on nothing more is asked, and calls that would be repeated reject. */
  close(): void {
    this.#isOpen = false;
  }

  /** @throws what was asked has no known outcome and cannot be repeated, or the way is closed */
  async call(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const headers = new Headers({ "X-Matrix-Secret": SECRET });
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    const isSafe = method === "GET" || headers.has("Idempotency-Key") || SAFE_BY_THEMSELVES.has(path);
    while (this.#isOpen) {
      const answer = await this.#once(method, path, { ...init, headers });
      if (answer?.status === 503) {
        this.unavailable++;
        if (!answer.headers.has("Retry-After")) this.impolite++;
      } else if (answer === null || isUnknown(answer)) {
        this.unknown++;
        if (!isSafe) throw new Error("nobody knows what became of it");
      } else return answer;
      await Bun.sleep(PAUSE_MS); // a node would wait for as long as Retry-After says; a test has no time
    }
    throw new Error("the way is closed");
  }

  post(path: string, body: object, init: RequestInit = {}): Promise<Answer> {
    return this.call("POST", path, { ...init, body: JSON.stringify(body) });
  }

  get(path: string): Promise<Answer> {
    return this.call("GET", path);
  }

  async #once(method: string, path: string, init: RequestInit): Promise<Answer | null> {
    try {
      const response = await fetch(`${this.api}${path}`, { ...init, method });
      return { status: response.status, headers: response.headers, body: objectOf(await response.text()) };
    } catch {
      return null;
    }
  }
}

function isUnknown({ status, body }: Answer): boolean {
  return status === 502 || status === 504 || (status === 500 && body["error"] === "outcome_unknown");
}

/** Reads the whole event log by cursor, page by page, as it grows. */
export class LogReader {
  readonly ids: number[] = [];
  readonly kinds = new Map<string, number>();
  #isReading = true;

  /** Resolves after stop(), when it has read to the end. */
  async read(way: Way): Promise<void> {
    for (let cursor = 0, isLast = false; ;) {
      isLast = !this.#isReading;
      const { body } = await way.get(`/events?since=${cursor}&limit=1000`);
      const events = listOf(body["events"]);
      for (const { id, kind } of events) {
        this.ids.push(Number(id));
        this.kinds.set(String(kind), (this.kinds.get(String(kind)) ?? 0) + 1);
      }
      cursor = Number(body["cursor"]);
      if (events.length === 0 && isLast) return;
      if (events.length === 0) await Bun.sleep(PAUSE_MS);
    }
  }

  stop(): void {
    this.#isReading = false;
  }

  /** Where an id does not follow the one before it. */
  get breaks(): readonly string[] {
    return this.ids.flatMap((id, i) => (id === i + 1 ? [] : [`${this.ids[i - 1]}, ${id}`])).slice(0, 20);
  }
}

/** Follows a node's stream, and comes back with its cursor whenever it breaks. */
export class Follower {
  /** The messages it was shown, by message_id, in the order they came. */
  readonly messages: string[] = [];
  breaks = -1; // the first opening is none
  #isReading = true;

  /** Resolves soon after stop(). */
  async follow(api: string, nodeId: string): Promise<void> {
    let last = "0";
    while (this.#isReading) {
      this.breaks++;
      try {
        await using stream = await SseReader.open(`${api}/agent/sse?node_id=${nodeId}`, SECRET, last);
        while (this.#isReading) {
          const event = await stream.next("message");
          this.messages.push(String(objectOf(event.data)["id"]));
          last = event.id;
        }
      } catch {
        await Bun.sleep(PAUSE_MS);
      }
    }
  }

  stop(): void {
    this.#isReading = false;
  }
}
