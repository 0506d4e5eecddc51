/**
 * The scene of repository.ts with the real programs of four agents, one for each worker, against an imitated model:
 * `bun repository-agents.ts DIRECTORY SCALE SEED`, where DIRECTORY has the programs, prints each figure as a line of JSON.
 * A reviewer, which is one of the agents too, passes or rejects by the patch.
 */
import { dirname, join } from "node:path";
import { AGENT_NAMES } from "../../src/cli/agents.ts";
import type { TempDir } from "../../test/e2e/program.ts";
import { type Action, type Conversation, serveModel } from "./agents-model.ts";
import { READ, SHELL, WRITE, makeHome, use } from "./agents-programs.ts";
import { BAD, type Cast, PLANTED, figuresOf, runRepository } from "./repository.ts";

const [directory = "", scale = "1", seed = "1"] = process.argv.slice(2);
const THINKS_MS = 1_500;
/** Of the program whose requests begin so. */
const CLAUDE = /\/messages$/;

let isSignedOut = false;

/** The title is the kind and a number; that of a review is what it reviews, behind a word. */
function script(talk: Conversation): Action {
  if (isSignedOut && CLAUDE.test(talk.path)) return { status: 401 };
  const all = talk.prompts.join("\n");
  const title = [...all.matchAll(/^Title: \n<<<\w+\n(.*)\n\w+>>>/gm)].at(-1)?.[1] ?? "";
  const report = [...all.matchAll(/^- (\/\S+) reports your progress/gm)].at(-1)?.[1] ?? "";
  const [kind = "", number = ""] = title.split(" ");
  const steps = stepsOf(kind, number, talk, dirname(report), report);
  const next = steps[Math.min(talk.turn, steps.length - 1)];
  return next === undefined ? { text: `There is no script ${title}.` } : { afterMs: THINKS_MS, ...next };
}

function stepsOf(
  kind: string,
  n: string,
  talk: Conversation,
  own: string,
  report: string,
): readonly Action[] {
  const work = dirname(own);
  const write = (path: string, content: string): Action => use(WRITE, talk, join(work, path), content);
  const result = (fields: object): Action =>
    use(WRITE, talk, join(own, "result.json"), `${JSON.stringify(fields)}\n`);
  const done = [
    {
      text: `I have a token: ${PLANTED.GITHUB_TOKEN}`,
      ...use(WRITE, talk, join(own, "out/log.txt"), PLANTED.MODEL_API_KEY),
    },
    use(WRITE, talk, report, `${JSON.stringify({ note: PLANTED.GITHUB_TOKEN })}\n`),
    result({ problem: "p", improvement: `i ${PLANTED.GITHUB_TOKEN}`, lesson: "none", output: { n } }),
    { text: "Done." },
  ];
  const shared = join(work, `dir-${Number(n) % 4}/file-${Number(n) % 4}.txt`);
  switch (kind) {
    case "refuse":
      return [{ text: "I cannot do this, because I lack access." }];
    case "hang":
      return [write("half.txt", "half\n"), { hangs: true }];
    case "line":
      return [
        use(READ, talk, join(work, "dir-0/file-0.txt")),
        write("dir-0/file-0.txt", `line ${n}\n`),
        ...done,
      ];
    case "nothing":
      return done;
    case "commit":
      return [
        write(`new-${n}.txt`, "one\n"),
        use(SHELL, talk, `git add --all && git commit -qm 'By ${n}'`),
        write(`more-${n}.txt`, "two\n"),
        ...done,
      ];
    case "bad": {
      const isRejected = (talk.prompts.at(-1) ?? "").includes("- rejected: ");
      return [write("judged.txt", isRejected ? "good\n" : `${BAD}\n`), ...done];
    }
    case "Review:": {
      const verdict = talk.results.some((text) => text.includes(BAD)) ? "reject" : "pass";
      const found = { verdict, note: "as the patch says" };
      return [
        use(READ, talk, join(own, "context/files/1/changes.patch")),
        // Both are allowed.
        result(
          Number(talk.results.length) % 2
            ? { problem: "p", improvement: "i", lesson: "none", output: found }
            : found,
        ),
        { text: "Done." },
      ];
    }
    default:
      return [
        use(READ, talk, shared),
        { text: "I change it.", ...use(WRITE, talk, shared, `changed by ${n}\n`) },
        write(`dir-${Number(n) % 20}/new-${n}.txt`, `${n}\n`),
        use(SHELL, talk, "git status --short"),
        ...done,
      ];
  }
}

function programs(model: string): (dir: TempDir) => Cast {
  return (dir) => ({
    kinds: [
      { kind: "work", status: "completed", share: 14 },
      { kind: "commit", status: "completed", share: 6 },
      { kind: "line", status: "completed", share: 4 },
      { kind: "nothing", status: "completed", share: 3 },
      { kind: "login", status: "completed", share: 3 },
      { kind: "good", status: "completed", share: 3, fields: { review: "capability:review" } },
      { kind: "bad", status: "completed", share: 3, fields: { review: "capability:review" } },
      { kind: "hang", status: "failed", share: 2, fields: { max_attempts: 2 } },
      { kind: "refuse", status: "failed", share: 2, fields: { max_attempts: 2 } },
    ],
    agentOf: (i) => {
      const agent = AGENT_NAMES[i % AGENT_NAMES.length] ?? "";
      const types = ["coding,login", "coding,review", "coding,review", "coding"][i] ?? "coding";
      return { agent, types, env: makeHome(agent, dir.join(agent), directory, model) };
    },
    program: /claude|codex|gemini|opencode/,
    idleS: 60,
    killAfterMs: { least: 4_000, most: 16_000 },
    signedOutMs: 120_000,
    signOut: (isOut) => (isSignedOut = isOut),
  });
}

const model = serveModel(script, process.env["MODEL_LOG"] ?? null);
const told = (line: string): void => console.error(line);
const report = await runRepository(
  Number(scale),
  Number(seed),
  told,
  programs(`http://127.0.0.1:${model.port}`),
);
for (const fault of report.faults) told(fault);
for (const figure of figuresOf(report)) console.log(JSON.stringify(figure));
await model.stop(true);
