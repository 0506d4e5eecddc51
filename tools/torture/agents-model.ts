/**
 * An imitation of the models behind AI agents, on loopback: the APIs of Anthropic (Messages), OpenAI (Responses and
 * Chat Completions) and Google (Gemini), as far as the programs need them. A script decides what the model does next.
 */

import { appendFileSync } from "node:fs";

/** What the model does next: it says something, or calls a tool. */
export type Action = {
  readonly text?: string;
  readonly tool?: { readonly name: string; readonly input: Fields };
  /** The request fails with this status. */
  readonly status?: number;
  /** The response never comes. */
  readonly hangs?: boolean;
  readonly afterMs?: number;
};

export type Conversation = {
  /** Of the request: which API, and so which program. */
  readonly path: string;
  readonly tools: readonly string[];
  /** What the worker wrote, without what the program adds by itself. */
  readonly prompts: readonly string[];
  /** What tools returned since the last prompt. */
  readonly results: readonly string[];
  /** How often the model has responded since the last prompt. */
  readonly turn: number;
};

type Fields = Readonly<Record<string, unknown>>;
type Item = { readonly by: "user" | "model" | "tool"; readonly text: string };
type Answer = { readonly action: Action; readonly model: string; readonly isStreamed: boolean };
type Api = {
  readonly path: RegExp;
  readonly tools: (body: unknown) => readonly string[];
  readonly items: (body: unknown) => readonly Item[];
  readonly answer: (answer: Answer) => Response;
};

/** Between the namespace of a tool and its name (OpenAI). */
const IN_NAMESPACE = "/";

/** The tokens of each response. */
export const USED = { input: 1_200, output: 34, cached: 1_000 };

/** Serves the model on a free port. `log` is a file that gets a line of JSON for what each request has shown to it. */
export function serveModel(
  script: (conversation: Conversation) => Action,
  log: string | null = null,
): Bun.Server<undefined> {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      const body: unknown = request.method === "POST" ? await request.json().catch(() => null) : null;
      const api = APIS.find(({ path }) => path.test(pathname));
      if (!api) return otherAnswer(pathname, body);
      const tools = api.tools(body);
      const conversation = { path: pathname, ...conversationOf(tools, api.items(body)) };
      const next = script(conversation);
      // Programs ask for titles and the like without tools.
      const action = tools.length === 0 && next.status === undefined ? { text: `{"title":"task"}` } : next;
      if (log !== null) appendFileSync(log, `${JSON.stringify({ pathname, body, action })}\n`);
      if (action.hangs) await new Promise(() => {});
      if (action.afterMs !== undefined) await Bun.sleep(action.afterMs);
      if (action.status !== undefined)
        return Response.json(
          { error: { type: "error", message: `imitated status ${action.status}`, code: action.status } },
          { status: action.status },
        );
      const isStreamed =
        at(body, "stream") === true || /:stream/.test(pathname) || searchParams.get("alt") === "sse";
      return api.answer({ action, isStreamed, model: String(at(body, "model") ?? "imitated-1") });
    },
  });
}

/** Requests that are no conversation: tokens are counted, models are listed. */
function otherAnswer(pathname: string, body: unknown): Response {
  const tokens = Math.ceil(JSON.stringify(body).length / 4);
  if (/count_?tokens$/i.test(pathname)) return Response.json({ input_tokens: tokens, totalTokens: tokens });
  if (pathname.endsWith("/models")) return Response.json({ object: "list", data: [], models: [] });
  return Response.json({}, { status: pathname === "/" ? 200 : 404 });
}

/** The worker's prompts name this file; what a program adds by itself does not. */
const IS_PROMPT = /result\.json/;

function conversationOf(tools: readonly string[], items: readonly Item[]): Omit<Conversation, "path"> {
  const prompts: string[] = [];
  let results: string[] = [];
  let turn = 0;
  let before: Item["by"] | null = null;
  for (const { by, text } of items) {
    if (by === "tool") results.push(text);
    else if (by === "model" && before !== "model") turn++;
    else if (by === "user" && IS_PROMPT.test(text)) {
      prompts.push(text);
      results = [];
      turn = 0;
    }
    before = by;
  }
  return { tools, prompts, results, turn };
}

// ---- The APIs

const APIS: readonly Api[] = [
  {
    path: /\/v1\/messages$/,
    tools: (body) => list(at(body, "tools")).map((tool) => text(at(tool, "name"))),
    items: (body) =>
      list(at(body, "messages")).flatMap((message): readonly Item[] => {
        const content = at(message, "content");
        const parts = Array.isArray(content) ? content : [{ type: "text", text: content }];
        if (at(message, "role") === "assistant") return [{ by: "model", text: "" }];
        const results = parts.filter((part) => at(part, "type") === "tool_result");
        return results.length > 0
          ? results.map((part) => ({ by: "tool", text: text(at(part, "content")) }))
          : parts.map((part) => ({ by: "user", text: text(at(part, "text")) }));
      }),
    answer: anthropic,
  },
  {
    path: /\/chat\/completions$/,
    tools: (body) => list(at(body, "tools")).map((tool) => text(at(tool, "function.name"))),
    items: (body) =>
      list(at(body, "messages")).flatMap((message): readonly Item[] => {
        const role = at(message, "role");
        const by = role === "assistant" ? "model" : role === "tool" ? "tool" : "user";
        return role === "system" || role === "developer" ? [] : [{ by, text: text(at(message, "content")) }];
      }),
    answer: chat,
  },
  {
    path: /\/responses$/,
    tools: (body) =>
      list(at(body, "tools")).flatMap((tool) => {
        const name = text(at(tool, "name") ?? at(tool, "type"));
        if (at(tool, "type") !== "namespace") return [name];
        return list(at(tool, "tools")).map((inner) => `${name}${IN_NAMESPACE}${text(at(inner, "name"))}`);
      }),
    items: (body) =>
      list(at(body, "input")).flatMap((item): readonly Item[] => {
        const [type, role] = [at(item, "type"), at(item, "role")];
        if (type === "function_call_output") return [{ by: "tool", text: text(at(item, "output")) }];
        if (type === "function_call" || role === "assistant") return [{ by: "model", text: "" }];
        return role === "user" ? [{ by: "user", text: text(at(item, "content")) }] : [];
      }),
    answer: responses,
  },
  {
    path: /:(stream)?generateContent$/i,
    tools: (body) =>
      list(at(body, "tools"))
        .flatMap((group) => list(at(group, "functionDeclarations")))
        .map((tool) => text(at(tool, "name"))),
    items: (body) =>
      list(at(body, "contents")).flatMap((content): readonly Item[] => {
        if (at(content, "role") === "model") return [{ by: "model", text: "" }];
        return list(at(content, "parts")).map((part) => {
          const result = at(part, "functionResponse.response");
          return result === undefined
            ? { by: "user", text: text(at(part, "text")) }
            : { by: "tool", text: text(at(result, "output") ?? result) };
        });
      }),
    answer: gemini,
  },
];

function anthropic({ action, model, isStreamed }: Answer): Response {
  const content = [
    ...(action.text === undefined ? [] : [{ type: "text", text: action.text }]),
    ...(action.tool === undefined ? [] : [{ type: "tool_use", id: newId("toolu"), ...action.tool }]),
  ];
  const usage = {
    input_tokens: USED.input - USED.cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: USED.cached,
    output_tokens: USED.output,
  };
  const stop = { stop_reason: action.tool === undefined ? "end_turn" : "tool_use", stop_sequence: null };
  const message = { id: newId("msg"), type: "message", role: "assistant", model, usage };
  if (!isStreamed) return Response.json({ ...message, content, ...stop });
  const blocks = content.flatMap((block, index) => {
    const isText = block.type === "text";
    const delta = isText
      ? { type: "text_delta", text: action.text }
      : { type: "input_json_delta", partial_json: JSON.stringify(action.tool?.input) };
    return [
      {
        type: "content_block_start",
        index,
        content_block: { ...block, ...(isText ? { text: "" } : { input: {} }) },
      },
      { type: "content_block_delta", index, delta },
      { type: "content_block_stop", index },
    ];
  });
  return eventStream([
    { type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
    ...blocks,
    { type: "message_delta", delta: stop, usage: { output_tokens: USED.output } },
    { type: "message_stop" },
  ]);
}

function chat({ action, model, isStreamed }: Answer): Response {
  const about = { id: newId("chatcmpl"), created: 1, model };
  const calls = callsOf(action).map(({ id, name, input }, index) => ({
    ...{ index, id, type: "function" },
    function: { name, arguments: JSON.stringify(input) },
  }));
  const message = {
    role: "assistant",
    content: action.text ?? "",
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const finish_reason = calls.length > 0 ? "tool_calls" : "stop";
  const usage = {
    prompt_tokens: USED.input,
    completion_tokens: USED.output,
    total_tokens: USED.input + USED.output,
    prompt_tokens_details: { cached_tokens: USED.cached },
  };
  if (!isStreamed)
    return Response.json({
      ...about,
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason }],
      usage,
    });
  const chunk = { ...about, object: "chat.completion.chunk" };
  return eventStream([
    { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason }] },
    { ...chunk, choices: [], usage },
    "[DONE]",
  ]);
}

function responses({ action, model, isStreamed }: Answer): Response {
  const output = [
    ...(action.text === undefined
      ? []
      : [
          {
            ...{ type: "message", id: newId("msg"), role: "assistant", status: "completed" },
            content: [{ type: "output_text", text: action.text, annotations: [] }],
          },
        ]),
    ...callsOf(action).map(({ id, name: given, input }) => {
      const [name, namespace] = given.split(IN_NAMESPACE).toReversed();
      return {
        ...{ type: "function_call", id: newId("fc"), call_id: id, name, status: "completed" },
        ...(namespace !== undefined && { namespace }),
        arguments: JSON.stringify(input),
      };
    }),
  ];
  const usage = {
    input_tokens: USED.input,
    input_tokens_details: { cached_tokens: USED.cached },
    output_tokens: USED.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: USED.input + USED.output,
  };
  const response = { id: newId("resp"), object: "response", created_at: 1, model, output, usage };
  const whole = { ...response, status: "completed", parallel_tool_calls: false, tools: [], error: null };
  if (!isStreamed) return Response.json(whole);
  return eventStream([
    { type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } },
    ...output.flatMap((item, output_index) => [
      { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress" } },
      { type: "response.output_item.done", output_index, item },
    ]),
    { type: "response.completed", response: whole },
  ]);
}

function gemini({ action, model, isStreamed }: Answer): Response {
  const parts = [
    ...(action.text === undefined ? [] : [{ text: action.text }]),
    ...callsOf(action).map(({ name, input }) => ({ functionCall: { name, args: input } })),
  ];
  const body = {
    candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
    usageMetadata: {
      promptTokenCount: USED.input,
      candidatesTokenCount: USED.output,
      cachedContentTokenCount: USED.cached,
      totalTokenCount: USED.input + USED.output,
    },
    modelVersion: model,
    responseId: newId("g"),
  };
  return isStreamed ? eventStream([body]) : Response.json(body);
}

function callsOf({ tool }: Action): readonly { id: string; name: string; input: Fields }[] {
  return tool === undefined ? [] : [{ id: newId("call"), ...tool }];
}

/** Each event has the name of its type, if it has one. */
function eventStream(events: readonly (Fields | string)[]): Response {
  const frames = events.map((event) => {
    const type = at(event, "type");
    const data = typeof event === "string" ? event : JSON.stringify(event);
    return `${typeof type === "string" ? `event: ${type}\n` : ""}data: ${data}\n\n`;
  });
  return new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } });
}

function newId(kind: string): string {
  return `${kind}_${Bun.randomUUIDv7().slice(-12)}`;
}

// ---- Reading JSON

/** The value at a path of names with dots; undefined: it is not there. */
function at(value: unknown, path: string): unknown {
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A text, or the texts of a list of parts. */
function text(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((part: unknown) => text(at(part, "text") ?? part)).join("\n");
  return value === undefined || value === null ? "" : JSON.stringify(value);
}
