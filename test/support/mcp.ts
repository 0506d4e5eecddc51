/**
 * Agents for the tests of MCP: the official client, in either revision of the protocol, with the node that it speaks
 * for.
 */
import { expect } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { MCP_RESULT_MAX_BYTES } from "../../src/domain/limits.ts";
import { SECRET } from "./hub.ts";

/** The revision of 2025, with `initialize`; and that of 2026, in which every request stands for itself. */
export const ERAS = ["2025-11-25", "2026-07-28"] as const;
export type Era = (typeof ERAS)[number];

export type Told = {
  readonly text: string;
  readonly data: Record<string, unknown>;
  readonly say: string;
  readonly isError: boolean;
  readonly content: readonly unknown[];
};

export class Agent {
  readonly client: Client;

  private constructor(client: Client) {
    this.client = client;
  }

  /** @param url of the hub, without a path. `headers` replace those of a node with the hub's secret. */
  static async connect(
    url: string,
    nodeId: string,
    era: Era = "2026-07-28",
    headers: Readonly<Record<string, string>> = { "X-Matrix-Secret": SECRET, "X-Node-Id": nodeId },
  ): Promise<Agent> {
    const mode = era === "2025-11-25" ? "legacy" : { pin: era };
    const client = new Client({ name: nodeId, version: "1" }, { versionNegotiation: { mode } });
    const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { ...headers } },
    });
    await client.connect(transport);
    expect(client.getNegotiatedProtocolVersion()).toBe(era);
    return new Agent(client);
  }

  /** Calls a tool. The text of every result must be its structured content, and short enough for a model. */
  async call(name: string, args: Record<string, unknown> = {}): Promise<Told> {
    const { content, structuredContent, isError } = await this.client.callTool({ name, arguments: args });
    const [first] = content;
    if (first?.type !== "text") throw new Error(`${name} answered no text`);
    const data = Object.fromEntries(Object.entries(structuredContent ?? {}));
    expect(JSON.parse(first.text)).toEqual(data);
    expect(first.text).not.toMatch(/\/api\/v1\/(?!file\/(?:download|upload))/);
    expect(Buffer.byteLength(first.text)).toBeLessThanOrEqual(MCP_RESULT_MAX_BYTES);
    return { text: first.text, data, say: String(data["say"]), isError: isError === true, content };
  }

  async ok(name: string, args: Record<string, unknown> = {}): Promise<Told["data"]> {
    const told = await this.call(name, args);
    expect([name, told.isError ? told.text : "ok"]).toEqual([name, "ok"]);
    return told.data;
  }

  async refused(name: string, args: Record<string, unknown> = {}): Promise<unknown> {
    const { isError, data } = await this.call(name, args);
    expect([name, isError]).toEqual([name, true]);
    return data["error"];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.client.close();
  }
}
