/**
 * The endpoints of A2A (the Agent2Agent protocol 1.0, docs/a2a.md): the agent cards, and for the hub and each node one
 * address for both bindings, JSON-RPC and HTTP+JSON. The protocol and its package are loaded at the first call, so that an
 * idle hub does not hold them.
 *
 * Must not: decide. A call is translated into the use cases of tasks, whose limits and refusals hold here too.
 */
import { type Endpoint, rawEndpoint } from "../api/endpoint.ts";
import { viewerNotAllowed } from "../api/error-table.ts";
import { type Method, pathParameter } from "../http/exchange.ts";
import { nodeLists } from "./nodes.ts";
import type { OperationName } from "./operations.ts";
import { CARD_PATH, HUB_PATH, type Session, type Shared } from "./session.ts";

const PUSH = "/tasks/:task_id/pushNotificationConfigs";

/** The HTTP+JSON binding. A path that ends with a task's id may name an operation after it: `/tasks/<id>:cancel`. */
const PATHS: readonly (readonly [method: Method, path: string, operation: OperationName])[] = [
  ["POST", "/message:send", "SendMessage"],
  ["POST", "/message:stream", "SendStreamingMessage"],
  ["GET", "/tasks", "ListTasks"],
  ["GET", "/tasks/:task_id", "GetTask"],
  ["POST", "/tasks/:task_id", "CancelTask"],
  ["POST", PUSH, "CreateTaskPushNotificationConfig"],
  ["GET", PUSH, "ListTaskPushNotificationConfigs"],
  ["GET", `${PUSH}/:config_id`, "GetTaskPushNotificationConfig"],
  ["DELETE", `${PUSH}/:config_id`, "DeleteTaskPushNotificationConfig"],
  ["GET", "/extendedAgentCard", "GetExtendedAgentCard"],
];

const NODE_PATH = `${HUB_PATH}/nodes/:node_id`;

export function a2aEndpoints(shared: Shared): readonly Endpoint[] {
  // Below the address too: clients that are given the address look for the card there.
  const cards = [CARD_PATH, HUB_PATH + CARD_PATH].map((path) =>
    rawEndpoint({
      method: "GET",
      path,
      auth: "open",
      summary: "The hub's agent card (A2A)",
      rejections: [],
      handle: async (call) => (await load()).answerCard({ call, shared, nodeId: null }),
    }),
  );
  const nodeCard = endpoint("GET", NODE_PATH + CARD_PATH, shared, async (session) =>
    (await load()).answerCard(session),
  );
  const addresses = [HUB_PATH, NODE_PATH].flatMap((base) => addressOf(base, shared));
  return [...cards, nodeCard, ...nodeLists(shared), ...addresses];
}

function addressOf(base: string, shared: Shared): readonly Endpoint[] {
  return [
    // With a slash too: some clients join an address and an empty path so.
    ...[base, `${base}/`].map((path) =>
      endpoint("POST", path, shared, async (session) => (await load()).answerRpc(session)),
    ),
    ...PATHS.map(([method, path, operation]) =>
      endpoint(method, base + path, shared, async (session) => (await load()).answerHttp(session, operation)),
    ),
  ];
}

const load = () => import("./bindings.ts");

function endpoint(
  method: Method,
  path: string,
  shared: Shared,
  answer: (session: Session) => Promise<Response>,
): Endpoint {
  return rawEndpoint({
    method,
    path,
    auth: "secret",
    summary: "The Agent2Agent protocol, for other agents",
    rejections: [],
    handle: async (call) => {
      if (call.key?.role === "viewer") throw viewerNotAllowed("use A2A");
      const nodeId = path.startsWith(NODE_PATH) ? pathParameter(call.exchange, "node_id") : null;
      return answer({ call, shared, nodeId });
    },
  });
}
