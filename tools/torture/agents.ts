/**
 * The real programs of the four agents that `luxhub worker --agent` knows, against an imitated model. No real model is
 * called.
 */
import { AGENT_NAMES } from "../../src/cli/agents.ts";
import { playScene } from "./agents-programs.ts";
import type { Section } from "./section.ts";

export const agentsSection: Section = {
  name: "agents",
  title: "AI agents as workers",
  limitMs: 20 * 60_000,
  run: (_scale, _seed, progress) => playScene("agents-scene.ts", AGENT_NAMES, progress),
};
