/**
 * The server side of the protocol, by the package of its authors: both revisions, the tools, the resources and the
 * prompt. Loaded at the first call. Each call gets a new server, which the package requires for stateless serving.
 */
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  createMcpHandler,
} from "@modelcontextprotocol/server";
import { broken, must } from "../lib/assert.ts";
import { VERSION } from "../version.ts";
import { INSTRUCTIONS, INSTRUCTIONS_OF_ATTEMPT, PROMPT, promptText } from "./prompt.ts";
import { RESOURCES, RESOURCE_TEMPLATES, readResource } from "./resources.ts";
import type { Serve, Session } from "./session.ts";
import { TOOL_LIST, type ToolName, callTool, hasTool } from "./tools.ts";

const HOUR_MS = 3_600_000;

/** Cache hints for data that never changes while a hub runs. */
const STATIC = { ttlMs: HOUR_MS, cacheScope: "public" } as const;

const CACHE_HINTS = {
  "server/discover": STATIC,
  "tools/list": STATIC,
  "prompts/list": STATIC,
  "resources/list": STATIC,
  "resources/templates/list": STATIC,
  "resources/read": { ttlMs: 0, cacheScope: "private" },
} as const;

/** The hub sends no requests to its callers, so it has no answers to validate. */
const NO_VALIDATOR = {
  getValidator: (): never => {
    throw broken("the hub asks a caller of MCP for no input");
  },
};

/** What a worker does itself for the task that its agent does. */
const NOT_OF_ATTEMPT: ReadonlySet<string> = new Set([
  "task_next",
  "task_complete",
  "task_fail",
  "task_release",
  "task_ask",
  "node_update",
] satisfies readonly ToolName[]);

/** The sessions of the running calls. */
const sessions = new WeakMap<Request, Session>();

const handler = createMcpHandler(({ requestInfo }) => {
  const session = requestInfo && sessions.get(requestInfo);
  return serverFor(must(session, "a call of MCP has a session"));
});

export const serve: Serve = (request, message, session) => {
  sessions.set(request, session);
  return handler.fetch(request, { parsedBody: message });
};

function serverFor(session: Session): Server {
  const server = new Server(
    { name: "luxhub", title: "luxhub", version: VERSION },
    {
      capabilities: { tools: {}, resources: {}, prompts: {} },
      instructions: session.isAttempt ? INSTRUCTIONS_OF_ATTEMPT : INSTRUCTIONS,
      cacheHints: CACHE_HINTS,
      jsonSchemaValidator: NO_VALIDATOR,
    },
  );
  const isOffered = (name: string): boolean => !session.isAttempt || !NOT_OF_ATTEMPT.has(name);
  server.setRequestHandler("tools/list", () => ({ tools: TOOL_LIST.filter(({ name }) => isOffered(name)) }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }): Promise<CallToolResult> => {
    const { name, arguments: given = {} } = params;
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken !== undefined)
      session.progress = (progress, total) => {
        const told = {
          method: "notifications/progress",
          params: { progressToken, progress, total },
        } as const;
        mcpReq.notify(told).catch(() => {}); // the client has hung up: its call notices that by itself
      };
    if (!hasTool(name) || !isOffered(name))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}`);
    return callTool(session, name, given);
  });
  server.setRequestHandler("resources/list", () => ({ resources: [...RESOURCES] }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [...RESOURCE_TEMPLATES],
  }));
  server.setRequestHandler("resources/read", async ({ params: { uri } }) => {
    const contents = await readResource(session, uri);
    if (contents === null) throw new ResourceNotFoundError(uri);
    return { contents: [contents] };
  });
  server.setRequestHandler("prompts/list", () => ({ prompts: [PROMPT] }));
  server.setRequestHandler("prompts/get", ({ params }) => {
    if (params.name !== PROMPT.name)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${params.name}`);
    const text = promptText(params.arguments?.["task_types"]);
    return {
      description: PROMPT.description,
      messages: [{ role: "user", content: { type: "text", text } }],
    };
  });
  return server;
}
