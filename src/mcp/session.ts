/**
 * The session of an agent: the context of one call. It identifies the caller's node, and registers it if it is unknown.
 *
 * Must not: decide, or remember anything: an agent may call any hub of a database, each call another. Everything is
 * done by the endpoints of HTTP, whose limits and refusals hold here too.
 */
import type { Call, Invocation } from "../api/endpoint.ts";
import { hashJson } from "../api/idempotency.ts";
import {
  JSON_DEPTH_MAX,
  MCP_PROGRESS_EVERY_MS,
  MCP_PROGRESS_WAIT_MAX_SECONDS,
  MCP_WAIT_MAX_SECONDS,
} from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { Problem, invalidRequest } from "../http/problem.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { ToolResult } from "./result.ts";
import { recordOf } from "./shapes.ts";

export class Refused extends Error {
  override readonly name = "Refused";
  readonly body: JsonObject;

  constructor(body: JsonObject) {
    super(String(body["detail"]));
    this.body = body;
  }
}

/** The code of a refusal; null: it is another error. */
export function codeOf(error: unknown): unknown {
  return error instanceof Refused ? error.body["error"] : null;
}

function badNodeId({ message }: Refused): Refused {
  const reason = message.slice(message.indexOf("node_id: ") + "node_id: ".length);
  return new Refused(invalidRequest([{ path: "X-Node-Id", message: reason }]).toJSON());
}

export type Shared = {
  readonly publicUrl: () => string;
};

/** Tells the client how many seconds of `total` a call has waited. */
export type Progress = (seconds: number, total: number) => void;

export class Session {
  readonly call: Call;
  readonly shared: Shared;
  /** The caller's node; null if the key is not bound to a node and the header X-Node-Id names none. */
  readonly nodeId: string | null;
  /** The agent does a task for a worker, which takes and reports the task. */
  readonly isAttempt: boolean;
  text = "";
  /** Null: the client did not ask for it (`progressToken`). */
  progress: Progress | null = null;
  #waitSeconds = 0;

  /**
   * @param hungUp aborts when the client no longer reads a response that has begun
   * @throws {Problem} 403 when the key is bound to another node than X-Node-Id names
   */
  constructor(call: Call, shared: Shared, hungUp: AbortSignal) {
    const { headers } = call.exchange.request;
    const named = headers.get("x-node-id") || null;
    const bound = call.nodeOfKey;
    if (bound !== null && named !== null && named !== bound) {
      const detail = `This key acts for ${bound} only. Send X-Node-Id: ${bound}, or leave the header out.`;
      throw new Problem(403, "key_bound_to_other_node", "Key bound to another node", detail);
    }
    const hold: Call["hold"] = (wait) =>
      call.hold((signal) => this.#whileWaiting(() => wait(AbortSignal.any([signal, hungUp]))));
    this.call = { ...call, hold };
    this.shared = shared;
    this.nodeId = bound ?? named;
    this.isAttempt = headers.has("x-luxhub-attempt");
  }

  /** The node that acts. @throws {Refused} when the caller has named none */
  get self(): string {
    if (this.nodeId !== null) return this.nodeId;
    const message =
      "is missing, and this tool acts for a node. Tell your user: bind the key to a node (luxhub keys add NAME --node NODE), or set this header in the configuration of the client";
    throw new Refused(invalidRequest([{ path: "X-Node-Id", message }]).toJSON());
  }

  /** The node that an argument names: "me" is the caller's. @throws {Refused} when the caller has named none */
  nodeOf(node: unknown): unknown {
    return node === "me" ? this.self : node;
  }

  /** How long a call may wait: longer if the client hears of its progress. */
  get maxWait(): number {
    return this.progress === null ? MCP_WAIT_MAX_SECONDS : MCP_PROGRESS_WAIT_MAX_SECONDS;
  }

  /** How long a call waits that asks for so many seconds. */
  waitFor(seconds: unknown): number {
    this.#waitSeconds = typeof seconds === "number" ? Math.min(Math.max(seconds, 0), this.maxWait) : 0;
    return this.#waitSeconds;
  }

  async #whileWaiting<T>(wait: () => Promise<T>): Promise<T> {
    const { progress } = this;
    if (progress === null) return wait();
    const total = this.#waitSeconds;
    let waited = 0;
    progress(waited, total);
    const timer = setInterval(() => {
      waited += MCP_PROGRESS_EVERY_MS / SECOND_MS;
      progress(waited, Math.max(total, waited));
    }, MCP_PROGRESS_EVERY_MS);
    try {
      return await wait();
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * An argument of the tool as it was sent: the protocol's package gets numbers that JSON.parse has rounded.
   * @throws {Problem} 400 when the call is nested too deep
   */
  exactArgument(name: string): unknown {
    try {
      const { params } = recordOf(parseExact(this.text));
      return recordOf(recordOf(params)["arguments"])[name];
    } catch (error) {
      // JSON.parse has read this text already: only its depth can exhaust the stack here.
      if (!(error instanceof RangeError)) throw error;
      throw invalidRequest([{ path: name, message: `must not be nested deeper than ${JSON_DEPTH_MAX}` }]);
    }
  }

  /** The fields of a success; numbers as in parseExact(). @throws {Refused} */
  async ask(
    method: Invocation["method"],
    path: string,
    input: JsonObject,
    idempotency?: Invocation["idempotency"],
  ): Promise<JsonObject> {
    const { status, body, replayed } = await this.call.invoke(this.call, {
      method,
      path: `/api/v1/${path}`,
      input,
      ...(idempotency ? { idempotency } : {}),
    });
    if (status !== 200) throw new Refused(body);
    const { success: _, ...answer } = body;
    return replayed ? { ...answer, repeated: true } : answer;
  }

  async isNode(nodeId: string): Promise<boolean> {
    try {
      await this.ask("GET", "node/:node_id", { node_id: nodeId });
      return true;
    } catch (error) {
      if (codeOf(error) === "node_not_found") return false;
      throw error;
    }
  }

  /** Every call is a heartbeat of its node, and the first call registers it. @throws {Refused} */
  async beat(): Promise<JsonObject | null> {
    if (this.nodeId === null) return null;
    try {
      return await this.ask("POST", "node/heartbeat", { node_id: this.nodeId });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.body["error"] === "invalid_request") throw badNodeId(error);
      if (error.body["error"] !== "node_not_found") throw error;
    }
    const profile = { node_id: this.nodeId, name: this.nodeId, auto_assign: false };
    await this.ask("POST", "node/register", profile).catch((error: unknown) => {
      throw error instanceof Refused && error.body["error"] === "invalid_request" ? badNodeId(error) : error;
    });
    return { node_id: this.nodeId, tasks_assigned: 0, messages_waiting: 0, drain: false };
  }
}

/** An identical call within MCP_REPEAT_WINDOW_MS is a repeat, unless its `key` differs. */
export function once({ nodeId }: Session, args: JsonObject) {
  return { key: `${nodeId ?? ""}:${hashJson(args)}`, implicit: true };
}

const REPEATED =
  "You made this very call before: this is its result, and nothing was done again. To do it again on purpose, add key.";

/** The result of a call that is done once(). */
export function onceTold({ repeated }: JsonObject, say: string, fields: JsonObject): ToolResult {
  return repeated === true ? { say: `${REPEATED} ${say}`, ...fields, repeated } : { say, ...fields };
}

/** Answers a message of the protocol. @param message the body of the request, parsed */
export type Serve = (request: Request, message: JsonObject, session: Session) => Promise<Response>;
