/**
 * The session of an agent: the context of one call. It identifies the caller's node, and registers it if it is unknown.
 *
 * Must not: decide, or remember anything: an agent may call any hub of a database, each call another. Everything is
 * done by the endpoints of HTTP, whose limits and refusals hold here too.
 */
import type { Call, Invocation } from "../api/endpoint.ts";
import { JSON_DEPTH_MAX } from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { Problem, invalidRequest } from "../http/problem.ts";
import { parseExact } from "../lib/exact-json.ts";
import { recordOf } from "./texts.ts";

/** A call was refused; `body` is the problem (RFC 9457). */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly body: JsonObject;

  constructor(body: JsonObject) {
    super(String(body["detail"]));
    this.body = body;
  }
}

function badNodeId({ message }: Refused): Refused {
  const said = message.slice(message.indexOf("node_id: ") + "node_id: ".length);
  return new Refused(invalidRequest([{ path: "X-Node-Id", message: said }]).toJSON());
}

/** The data that all sessions of a hub share. */
export type Shared = {
  /** Returns the beginning of links. */
  readonly publicUrl: () => string;
};

export class Session {
  readonly call: Call;
  readonly shared: Shared;
  /** The caller's node; null if the key is not bound to a node and the header X-Node-Id names none. */
  readonly nodeId: string | null;
  /** The body of the call. */
  text = "";

  /** @throws {Problem} 403 when the key is bound to another node than X-Node-Id names */
  constructor(call: Call, shared: Shared) {
    const named = call.exchange.request.headers.get("x-node-id") || null;
    const bound = call.key?.nodeId ?? null;
    if (bound !== null && named !== null && named !== bound) {
      const detail = `This key acts for ${bound} only. Send X-Node-Id: ${bound}, or leave the header out.`;
      throw new Problem(403, "key_bound_to_other_node", "Key bound to another node", detail);
    }
    this.call = call;
    this.shared = shared;
    this.nodeId = bound ?? named;
  }

  /** The node that acts. @throws {Refused} when the caller has named none */
  get self(): string {
    if (this.nodeId !== null) return this.nodeId;
    const message =
      "is required for this tool: your key is not bound to a node, so name your node in this header (for all calls)";
    throw new Refused(invalidRequest([{ path: "X-Node-Id", message }]).toJSON());
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
    return { node_id: this.nodeId, tasks_assigned: 0, messages_waiting: 0 };
  }
}

/** Answers a message of the protocol. @param message the body of the request, parsed */
export type Serve = (request: Request, message: JsonObject, session: Session) => Promise<Response>;
