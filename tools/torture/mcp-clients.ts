/**
 * The real programs of six MCP clients, as `luxhub mcp-config` and `luxhub worker --mcp` configure them, against an
 * imitated model: what each shows its model of the hub's tools, and whether it calls them without a person. No real model
 * is called.
 */
import { playScene } from "./agents-programs.ts";
import type { Section } from "./section.ts";

const CLIENTS = ["claude", "codex", "copilot", "gemini", "opencode", "qwen"] as const;

export const mcpClientsSection: Section = {
  name: "mcp-clients",
  title: "MCP clients and what they show their models",
  limitMs: 15 * 60_000,
  run: (_scale, _seed, progress) => playScene("mcp-clients-scene.ts", CLIENTS, progress),
};
