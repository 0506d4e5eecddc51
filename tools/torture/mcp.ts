/**
 * The conformance suite of the Model Context Protocol, in both revisions, against the executable, and against the same
 * endpoint with the tools that the suite calls by name (test/support/mcp-fixture.ts).
 *
 * The suite is a client without secrets: a proxy adds that of the hub. What may fail is listed with its reason; a scenario
 * that fails and is not listed, or is listed and holds, makes the section fail.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Hub, SECRET as PROGRAM_SECRET, TempDir } from "../../test/e2e/program.ts";
import { SECRET, startHub } from "../../test/support/hub.ts";
import { ERAS, type Era } from "../../test/support/mcp.ts";
import { PROJECT } from "../../test/support/executable.ts";
import { serve } from "../../test/support/mcp-fixture.ts";
import { type Figure, type Section, notRun } from "./section.ts";

/** Its hundred packages are installed for this section alone. */
const SUITE = join(PROJECT, ".ci/mcp/node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** What neither server offers, and why. */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  "logging-set-level": "the hub has a log for its operator, and logs nothing to agents",
  "tools-call-with-logging": "the same",
  "completion-complete": "no argument of the prompt or of a resource can be completed",
  "resources-subscribe":
    "agents wait by tools (task_get, task_next, mail_check); subscriptions would hold connections",
  "resources-unsubscribe": "the same",
  "tools-call-sampling": "the hub asks its callers for nothing",
  "tools-call-elicitation": "the same",
  "elicitation-sep1034-defaults": "the same",
  "elicitation-sep1330-enums": "the same",
  "server-stateless": "the same: four of its checks call a tool that asks; the others hold",
  "input-required-result-basic-elicitation": "the same",
  "input-required-result-basic-sampling": "the same",
  "input-required-result-basic-list-roots": "the same",
  "input-required-result-request-state": "the same",
  "input-required-result-multiple-input-requests": "the same",
  "input-required-result-multi-round": "the same",
  "input-required-result-non-tool-request": "the same",
  "input-required-result-result-type": "the same",
  "input-required-result-tampered-state": "the same",
  "input-required-result-capability-check": "the same",
};

/** What the suite asks of tools, resources and prompts with names of its own: the fixture has them, the hub has not. */
const OF_THE_FIXTURE: readonly string[] = [
  "tools-call-simple-text",
  "tools-call-image",
  "tools-call-audio",
  "tools-call-embedded-resource",
  "tools-call-mixed-content",
  "tools-call-error",
  "tools-call-with-progress",
  "resources-read-text",
  "resources-read-binary",
  "resources-templates-read",
  "prompts-get-simple",
  "prompts-get-with-args",
  "prompts-get-embedded-resource",
  "prompts-get-with-image",
];

export const mcpSection: Section = {
  name: "mcp",
  title: "Conformance to MCP",
  limitMs: 10 * 60_000,
  run: async () => {
    if (!existsSync(SUITE)) return [notRun("conformance", "needs `bun install --cwd .ci/mcp`")];
    const figures: Figure[] = [];
    using data = new TempDir();
    {
      await using hub = await Hub.start({ data: data.path });
      const may = new Set([...Object.keys(NOT_OFFERED), ...OF_THE_FIXTURE]);
      for (const era of ERAS)
        figures.push(
          await conform("the executable", `http://127.0.0.1:${hub.port}`, PROGRAM_SECRET, era, may),
        );
    }
    await using hub = await startHub({ loadMcp: async () => ({ serve }) });
    for (const era of ERAS)
      figures.push(await conform("the fixture", hub.base(), SECRET, era, new Set(Object.keys(NOT_OFFERED))));
    return figures;
  },
};

async function conform(
  what: string,
  base: string,
  secret: string,
  era: Era,
  mayFail: ReadonlySet<string>,
): Promise<Figure> {
  const proxy = withSecret(base, secret);
  using results = new TempDir();
  try {
    const url = `http://127.0.0.1:${proxy.port}/mcp`;
    const words = ["server", "--url", url, "--requirements", era, "-o", results.path];
    const child = Bun.spawn([process.execPath, SUITE, ...words], {
      cwd: results.path,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return figureOf(`${what}, ${era}`, `${out}\n${err}`, mayFail);
  } finally {
    await proxy.stop(true);
  }
}

/** From the summary of the suite, one line a scenario; the last part of it is of what does not count. */
function figureOf(name: string, output: string, mayFail: ReadonlySet<string>): Figure {
  const [, summary = ""] = output.split("=== SUMMARY ===");
  const uncounted = new Set(
    [...summary.matchAll(/^ {2}[✓✗] (\S+) \(/gm)].map(([, scenario]) => scenario ?? ""),
  );
  const lines = [...summary.matchAll(/^([✓✗]) (\S+): (\d+) passed, (\d+) failed/gm)];
  const scenarios = lines.map(([, mark, scenario = ""]) => ({ scenario, held: mark === "✓" }));
  const counted = scenarios.filter(({ scenario }) => !uncounted.has(scenario));
  const unexpected = counted.filter(({ scenario, held }) => held === mayFail.has(scenario));
  const held = counted.filter((one) => one.held).length;
  const named = unexpected.map((one) => `${one.scenario} ${one.held ? "holds" : "fails"}`);
  return {
    what: `conformance of ${name}: scenarios; that hold; unexpected`,
    value: [counted.length, held, unexpected.length, ...named].join("; "),
    goal: "none unexpected",
    held: counted.length >= 25 && unexpected.length === 0,
  };
}

/** The Host stays as it is, because the suite tests what becomes of a foreign one. */
function withSecret(base: string, secret: string) {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.set("X-Matrix-Secret", secret);
      headers.set("X-Node-Id", "conformance");
      const body = request.body ? await request.bytes() : null;
      const answer = await fetch(`${base}${pathname}${search}`, { method: request.method, headers, body });
      return new Response(answer.body, { status: answer.status, headers: answer.headers });
    },
  });
}
