/**
 * The session of an agent: one call of it, with who it is and what it may reach. It registers a node that the hub does not
 * know yet, and remembers what it has handed out to each node.
 *
 * Must not: decide. Everything is done by the endpoints of HTTP, whose limits and refusals hold here too.
 */
import type { Call, Invocation } from "../api/endpoint.ts";
import * as limit from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { Problem, invalidRequest } from "../http/problem.ts";

/** A call was refused; `body` is the problem (RFC 9457). */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly body: JsonObject;

  constructor(body: JsonObject) {
    super(String(body["detail"]));
    this.body = body;
  }
}

/** What a hub remembers of the hand-outs to one node. */
type Remembered = {
  /**
   * The last hand-out, until the agent names the task in a call: if its answer was lost, it must be handed out again.
   * Undefined until the first task_next: the node may have been handed out tasks by another hub, or before a restart.
   */
  unnamed: string | null | undefined;
  /** The tasks that the agent has named while `unnamed` is undefined. */
  readonly named: Set<string>;
  /** The epochs of what was handed out, by task_id: they distinguish a repeated call from one about a later hand-out. */
  readonly epochs: Map<string, number>;
};

/**
 * What each node was handed out. It is in memory: of a node that this hub does not remember, task_next asks the store what
 * the node has started, and hands out again the oldest of it that the agent has not named.
 */
export class HandOuts {
  readonly #nodes = new Map<string, Remembered>();

  /** The task whose hand-out must be repeated; null: none; undefined: this hub does not know. */
  unnamed(nodeId: string): string | null | undefined {
    return this.#nodes.get(nodeId)?.unnamed;
  }

  /** Whether the agent has named the task since this hub remembers the node. */
  hasNamed(nodeId: string, taskId: string): boolean {
    return this.#nodes.get(nodeId)?.named.has(taskId) ?? false;
  }

  epochOf(nodeId: string, taskId: string): number | null {
    return this.#nodes.get(nodeId)?.epochs.get(taskId) ?? null;
  }

  /** @param named the agent named the task itself: it knows that it has it */
  note(nodeId: string, taskId: string, epoch: number, named: boolean): void {
    const remembered = this.#remember(nodeId);
    if (!named) remembered.unnamed = taskId;
    else this.name(nodeId, taskId);
    remembered.epochs.delete(taskId);
    remembered.epochs.set(taskId, epoch);
    deleteOldest(remembered.epochs, limit.MCP_TASKS_REMEMBERED_MAX);
  }

  /** There was nothing to hand out to the node. */
  noteNone(nodeId: string): void {
    this.#remember(nodeId).unnamed = null;
  }

  /** The agent has named a task in a call. */
  name(nodeId: string, taskId: string): void {
    const remembered = this.#remember(nodeId);
    if (remembered.unnamed === taskId) remembered.unnamed = null;
    if (remembered.unnamed !== undefined) return remembered.named.clear();
    remembered.named.add(taskId);
    deleteOldest(remembered.named, limit.MCP_TASKS_REMEMBERED_MAX);
  }

  #remember(nodeId: string): Remembered {
    const remembered = this.#nodes.get(nodeId) ?? {
      unnamed: undefined,
      named: new Set<string>(),
      epochs: new Map<string, number>(),
    };
    this.#nodes.delete(nodeId); // the last that was used is the last that is forgotten
    this.#nodes.set(nodeId, remembered);
    deleteOldest(this.#nodes, limit.MCP_NODES_REMEMBERED_MAX);
    return remembered;
  }
}

function deleteOldest<K>(from: Map<K, unknown> | Set<K>, most: number): void {
  for (const key of from.keys()) {
    if (from.size <= most) break;
    from.delete(key);
  }
}

function badNodeId({ message }: Refused): Refused {
  const said = message.slice(message.indexOf("node_id: ") + "node_id: ".length);
  return new Refused(invalidRequest([{ path: "X-Node-Id", message: said }]).toJSON());
}

/** What all sessions of a hub share. */
export type Shared = {
  readonly handOuts: HandOuts;
  /** What links begin with. */
  readonly publicUrl: () => string;
};

export class Session {
  readonly call: Call;
  readonly shared: Shared;
  /** Who calls; null for a key that is bound to no node, when the header X-Node-Id names none. */
  readonly nodeId: string | null;

  /** @throws {Problem} 403 when the key is bound to another node than X-Node-Id names */
  constructor(call: Call, shared: Shared) {
    const named = call.exchange.request.headers.get("x-node-id") || null;
    const bound = call.key?.nodeId ?? null;
    if (bound !== null && named !== null && named !== bound) {
      const detail = `This key acts for ${bound} only. Send X-Node-Id: ${bound}, or leave the header out.`;
      throw new Problem(403, "key_bound_to_other_node", "Key of another node", detail);
    }
    this.call = call;
    this.shared = shared;
    this.nodeId = bound ?? named;
  }

  /** The node that acts. @throws {Refused} when the caller has named none */
  get self(): string {
    if (this.nodeId !== null) return this.nodeId;
    const message =
      "is required for this tool: your key is bound to no node, so name yours in this header (for all calls)";
    throw new Refused(invalidRequest([{ path: "X-Node-Id", message }]).toJSON());
  }

  /** The fields of a success. @throws {Refused} */
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
