/**
 * A server of MCP with the tools, resources and prompts that the conformance suite calls by name, for the hub's own
 * endpoint: the suite then reaches what the hub's own tools do not answer (images, audio, progress).
 */
import {
  type CallToolResult,
  type GetPromptResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  Server,
  createMcpHandler,
} from "@modelcontextprotocol/server";
import type { Serve } from "../../src/mcp/session.ts";

const BYTES = Buffer.from("not really media").toString("base64");

const text = (words: string) => ({ type: "text", text: words }) as const;
const IMAGE = { type: "image", data: BYTES, mimeType: "image/png" } as const;
const embedded = (uri: string, words: string, mimeType = "text/plain") =>
  ({ type: "resource", resource: { uri, mimeType, text: words } }) as const;

const TOOLS: Readonly<Record<string, CallToolResult>> = {
  test_simple_text: { content: [text("This is a simple text response for testing.")] },
  test_image_content: { content: [IMAGE] },
  test_audio_content: { content: [{ type: "audio", data: BYTES, mimeType: "audio/wav" }] },
  test_embedded_resource: { content: [embedded("test://embedded-resource", "An embedded resource.")] },
  test_multiple_content_types: {
    content: [text("Several:"), IMAGE, embedded("test://mixed", '{"test":1}', "application/json")],
  },
  test_error_handling: { content: [text("This tool always fails")], isError: true },
  test_tool_with_progress: { content: [text("It has made progress")] },
};

const user = (content: GetPromptResult["messages"][number]["content"]) =>
  ({ role: "user", content }) as const;

const PROMPTS: Readonly<
  Record<string, (args: Readonly<Record<string, string>>) => GetPromptResult["messages"]>
> = {
  test_simple_prompt: () => [user(text("This is a simple prompt for testing."))],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [user(text(`Prompt with '${arg1}' and '${arg2}'`))],
  test_prompt_with_embedded_resource: ({ resourceUri = "" }) => [user(embedded(resourceUri, "A resource."))],
  test_prompt_with_image: () => [user(IMAGE), user(text("Look at the image."))],
};

function contentsOf(uri: string): ReadResourceResult["contents"] {
  if (uri === "test://static-text") return [{ uri, mimeType: "text/plain", text: "Static text." }];
  if (uri === "test://static-binary") return [{ uri, mimeType: "image/png", blob: BYTES }];
  const [, id] = /^test:\/\/template\/(\w+)\/data$/.exec(uri) ?? [];
  if (id === undefined) throw new ResourceNotFoundError(uri);
  return [{ uri, mimeType: "application/json", text: JSON.stringify({ id, data: `Data for ID: ${id}` }) }];
}

function makeServer(): Server {
  const server = new Server(
    { name: "fixture", version: "1" },
    { capabilities: { tools: {}, resources: {}, prompts: {} } },
  );
  server.setRequestHandler("tools/list", () => ({
    tools: Object.keys(TOOLS).map((name) => ({
      name,
      description: `The tool ${name}`,
      inputSchema: { type: "object" },
    })),
  }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (params.name === "test_tool_with_progress" && progressToken !== undefined)
      for (const progress of [0, 50, 100])
        await mcpReq.notify({
          method: "notifications/progress",
          params: { progressToken, progress, total: 100 },
        });
    return TOOLS[params.name] ?? unknown(params.name);
  });
  server.setRequestHandler("resources/list", () => ({
    resources: ["test://static-text", "test://static-binary"].map((uri) => ({ uri, name: uri })),
  }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template" }],
  }));
  server.setRequestHandler("resources/read", ({ params }) => ({ contents: contentsOf(params.uri) }));
  server.setRequestHandler("prompts/list", () => ({
    prompts: Object.keys(PROMPTS).map((name) => ({ name, description: `The prompt ${name}` })),
  }));
  server.setRequestHandler("prompts/get", ({ params }) => ({
    messages: PROMPTS[params.name]?.(params.arguments ?? {}) ?? unknown(params.name),
  }));
  return server;
}

function unknown(name: string): never {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown: ${name}`);
}

const handler = createMcpHandler(makeServer);

export const serve: Serve = (request, message) => handler.fetch(request, { parsedBody: message });
