/**
 * Agents that work by MCP, killed with kill -9 as their hub is. `bun run torture --only mcp-agents` is the long form, with a
 * hundred tasks.
 */
import { expect, test } from "bun:test";
import { runAgents } from "../../tools/torture/mcp-agents.ts";

test("five agents and their hub are killed: every task is completed once, with the right result", async () => {
  const report = await runAgents(20, 1, () => {});
  const { missing, twice, wrong, faults } = report;
  expect({ missing, twice, wrong, faults }).toEqual({ missing: [], twice: [], wrong: [], faults: [] });
  expect([report.agentsKilled, report.hubsKilled]).toEqual([6, 1]);
  expect(report.begun).toBeGreaterThanOrEqual(20);
});
