/**
 * Imitates the command-line programs of four AI agents, as far as a worker sees them: arguments, the prompt on standard
 * input, sessions that are found again, and the lines that they print. Run as `imitated-agent.ts NAME ARGS…`; the title
 * of the task says what its "model" does. An argument that the program does not have ends it with exit code 2.
 *
 * IMITATION names a directory: sessions are kept there, by the directory in which they began for the programs that do
 * so, and each run is logged in `runs`.
 */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

const [name = "", ...args] = process.argv.slice(2);
const home = process.env["IMITATION"] ?? "";
const prompt = await Bun.stdin.text();

/** Value flags and switches of each program that the worker uses; the rest is an error. */
const FLAGS: Readonly<Record<string, readonly [readonly string[], readonly string[]]>> = {
  claude: [
    ["--output-format", "--permission-mode", "--resume", "--mcp-config", "--allowedTools"],
    ["-p", "--verbose"],
  ],
  codex: [
    ["--sandbox", "-c"],
    ["--json", "--skip-git-repo-check"],
  ],
  gemini: [["--output-format", "--approval-mode", "--resume"], []],
  opencode: [["--format", "--session"], []],
};

const flags: Record<string, string> = {};
const words: string[] = [];
for (let i = 0; i < args.length; i++) {
  const arg = args[i] ?? "";
  const [valued = [], switches = []] = FLAGS[name] ?? [];
  if (valued.includes(arg)) flags[arg] = args[++i] ?? "";
  else if (!switches.includes(arg) && arg.startsWith("-") && arg !== "-") die(2, `unknown option ${arg}`);
  else if (!switches.includes(arg)) words.push(arg);
}
const WORDS: Readonly<Record<string, string>> = { claude: "", codex: "exec", gemini: "", opencode: "run" };
if ((words[0] ?? "") !== WORDS[name]) die(2, `unexpected ${words.join(" ")}`);
const resumed =
  name === "codex" && words[1] === "resume" ? words[2] : (flags["--resume"] ?? flags["--session"]);
if (name === "codex" && words.at(-1) !== "-") die(2, "no prompt");

// A session is found by its id, and by the directory for those programs that keep sessions by project.
const project = name === "claude" || name === "gemini" ? process.cwd().replaceAll("/", "-") : "";
const store = join(home, `${name}${project}`);
mkdirSync(store, { recursive: true });
const session = resumed ?? `${name === "opencode" ? "ses_" : ""}${crypto.randomUUID()}`;
const file = join(store, session);
if (resumed !== undefined && !existsSync(file)) {
  // As Claude Code 2.1.197 does; the others print nothing.
  if (name === "claude")
    say({
      type: "result",
      subtype: "error_during_execution",
      is_error: true,
      session_id: session,
      usage: {},
    });
  die(1, `No conversation found with session ID: ${resumed}`);
}
const turn = (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0) + 1;
writeFileSync(file, String(turn));

/** What a model is told that has ended without a result does not have the title. */
const isNudge = prompt.startsWith("You ended without result.json");
const title = isNudge
  ? readFileSync(`${file}.title`, "utf8")
  : (/Title: \n<<<\w+\n(.*)\n\w+>>>/.exec(prompt)?.[1] ?? "");
writeFileSync(`${file}.title`, title);
const report = / (\/\S+) reports your progress/.exec(prompt)?.[1] ?? "";
appendFileSync(
  join(home, "runs"),
  `${JSON.stringify({ name, args, cwd: process.cwd(), title, prompt, turn })}\n`,
);

/** The command of the server luxhub in the configuration of this run, as each program gets it. */
function hubServer(): string[] {
  if (name === "codex") {
    const { command, args } = Object(Bun.TOML.parse(flags["-c"] ?? "")).mcp_servers.luxhub;
    return [command, ...args];
  }
  const config =
    flags["--mcp-config"] ??
    process.env["OPENCODE_CONFIG_CONTENT"] ??
    readFileSync(".gemini/settings.json", "utf8");
  const { mcpServers, mcp } = JSON.parse(config);
  const { command, args = [] } = (mcpServers ?? mcp).luxhub;
  return [command, args].flat();
}

/** renameat2(2) with RENAME_EXCHANGE. */
const EXCHANGE = `
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
for _ in range(60_000):
    if os.path.isdir("inputs") and not os.path.islink("inputs"):
        libc.renameat2(-100, b"link", -100, b"inputs", 2)
        open(sys.argv[1], "w").close()
        break
    time.sleep(0.0001)
`;

/** Titles for which the model says nothing. */
const SILENT = ["logged out", "overloaded", "poison"];

began();
switch (title) {
  case "write":
    writeFileSync("out/made.txt", "made\n");
    appendFileSync(report, `{"note":"half done","checkpoint":{"at":1}}\n`);
    writeFileSync(
      "result.json",
      `{"problem":"p","improvement":"i","lesson":"l","output":{"n":12345678901234567890}}`,
    );
    ended("wrote it");
    break;
  case "delegate": {
    // As the program does with the MCP server of its configuration.
    const calls = [
      ["initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1" } }],
      ["tools/list", {}],
      ["tools/call", { name: "task_create", arguments: { title: "sub", description: "d" } }],
    ].map(([method, params], id) => `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    const server = Bun.spawn(hubServer(), { stdin: new Blob(calls), stdout: "pipe" });
    const answers = (await new Response(server.stdout).text()).trim().split("\n");
    writeFileSync("result.json", JSON.stringify({ improvement: "i", output: answers.toSorted() }));
    ended("delegated");
    break;
  }
  case "again":
    appendFileSync("notes.txt", `turn ${turn}\n`);
    if (turn === 1) ended("", "the connection broke");
    else finished(`${readFileSync("notes.txt", "utf8")}in the end`);
    break;
  case "forget":
    if (existsSync("begun")) finished("from the beginning");
    writeFileSync("begun", "");
    rmSync(store, { recursive: true, force: true });
    ended("", "the connection broke");
    break;
  case "ask":
    if (prompt.includes(`"blue"`)) finished(`it is blue, in turn ${turn}`);
    writeFileSync("result.json", `{"ask":"Which colour?","choices":["red","blue"]}`);
    ended("I must know the colour");
    break;
  case "full":
    if (existsSync("begun") && turn === 1) finished("with a new session");
    writeFileSync("begun", "");
    ended("", "prompt is too long", turn === 1 ? 1 : 0);
    break;
  case "hang":
    if (turn === 1) {
      writeFileSync(join(home, "hangs"), "\n");
      await new Promise(() => setInterval(() => {}, 60_000));
    }
    finished("came back");
    break;
  case "never":
    writeFileSync("result.json", `{"failed":"there is no such book","retry":false}`);
    ended("I cannot");
    break;
  case "escape": {
    // Links where the worker writes, to a file that a sandbox would protect.
    const answers = process.env["LUXHUB_ANSWERS"] ?? "";
    for (const dir of [dirname(process.env["LUXHUB_REPORT"] ?? ""), dirname(answers)])
      symlinkSync(join(home, "victim"), join(dir, "answers.json.new"));
    appendFileSync(report, `{"ask":{"question":"now?","within_s":1}}\n`);
    while (!readFileSync(answers, "utf8").includes("now?")) await Bun.sleep(50);
    finished("escaped");
    break;
  }
  case "exchange":
    if (existsSync("begun")) {
      while (!existsSync(join(home, "exchanged"))) await Bun.sleep(50);
      finished("exchanged");
    }
    writeFileSync("begun", "");
    rmSync("inputs", { recursive: true });
    symlinkSync(join(home, "victims"), "link");
    // It leaves the group of the command, and puts the link in the place of the next inputs/.
    Bun.spawn(["python3", "-c", EXCHANGE, join(home, "exchanged")], {
      detached: true,
      stdio: ["ignore", "ignore", "ignore"],
    }).unref();
    ended("", "again");
    break;
  case "many":
    if (turn === 1) for (let i = 0; i <= 100; i++) writeFileSync(`out/${i}`, "");
    else {
      rmSync("out", { recursive: true });
      mkdirSync("out");
      writeFileSync("out/all.tar", "");
    }
    finished(prompt.includes("put them into one archive") ? "in one archive" : "made many");
    break;
  case "link":
    if (isNudge) {
      rmSync("result.json");
      finished("linked");
    }
    rmSync("out", { recursive: true });
    symlinkSync(home, "out");
    symlinkSync(join(home, "secret.json"), "result.json");
    ended("I made links");
    break;
  case "forgetful":
    if (isNudge) finished("here it is");
    ended("I am done.");
    break;
  case "replies":
    // It may not write, and says so as the program does.
    ended(isNudge ? '```json\n{"output":{"is":"there"}}\n```' : "I may not write files.");
    break;
  case "refuses":
    // Asked once more, it is silent.
    ended(isNudge ? "" : "I cannot do this because I lack access.");
    break;
  case "logged out":
    if (!existsSync(join(home, "logged in"))) loggedOut("Invalid API key");
    finished("logged in");
    break;
  case "overloaded":
    loggedOut("529 overloaded");
    break;
  case "poison":
    loggedOut("the content of this request is not allowed");
    break;
  case "works, then hangs":
    say({
      type: "assistant",
      session_id: session,
      message: {
        id: "msg_1",
        usage: { input_tokens: 30, cache_read_input_tokens: 60, output_tokens: 7 },
        content: [],
      },
    });
    await new Promise(() => setInterval(() => {}, 60_000));
    break;
  default:
    finished(`Done: ${title}`);
}

/** Ends as a model does that follows its prompt. */
function finished(answer: string): never {
  writeFileSync("result.json", JSON.stringify({ output: answer }));
  ended(answer);
}

/** Ends before the model says anything, as each program does. */
function loggedOut(message: string): never {
  if (name === "claude") {
    const content = [{ type: "text", text: message }];
    const usage = { input_tokens: 0, output_tokens: 0 };
    say({
      type: "assistant",
      session_id: session,
      message: { id: "1", model: "<synthetic>", content, usage },
    });
    say({ type: "result", is_error: true, result: message, session_id: session, total_cost_usd: 0, usage });
  } else if (name === "codex") {
    say({ type: "item.completed", item: { id: "item_0", type: "error", message: "Reconnecting... 1/5" } });
    say({ type: "turn.failed", error: { message } });
  } else if (name === "gemini") process.stdout.write(`${message}\n`);
  else say({ type: "error", sessionID: session, error: { name: "APIError", data: { message } } });
  process.exit(1);
}

function say(line: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function began(): void {
  if (name === "claude")
    say({ type: "system", subtype: "init", session_id: session, model: "claude-test-1" });
  if (name === "codex") {
    say({ type: "thread.started", thread_id: session });
    say({ type: "turn.started" });
    if (!SILENT.includes(title))
      say({ type: "item.completed", item: { id: "item_0", type: "reasoning", text: "not the answer" } });
  }
  if (name === "gemini") {
    process.stdout.write("Loaded cached credentials.\n");
    say({ type: "init", session_id: session, model: "auto" });
    say({ type: "message", role: "user", content: prompt });
    if (SILENT.includes(title) || (isNudge && title === "refuses")) return;
    say({ type: "message", role: "assistant", content: "I will look.", delta: true });
    say({ type: "tool_use", tool_name: "read_file", tool_id: "1", parameters: {} });
  }
  if (name === "opencode") say({ type: "step_start", sessionID: session, part: { type: "step-start" } });
}

/** Each turn uses 100 input tokens (of them 60 cached) and 10 output tokens, for a hundredth of a dollar. */
function ended(answer: string, error: string | null = null, share = 1): never {
  if (name === "claude") {
    const usage = {
      input_tokens: 30 * share,
      cache_creation_input_tokens: 10 * share,
      cache_read_input_tokens: 60 * share,
      output_tokens: 10 * share,
    };
    say({ type: "assistant", session_id: session, message: { content: [{ type: "text", text: answer }] } });
    say({
      type: "result",
      subtype: error === null ? "success" : "error_during_execution",
      is_error: error !== null,
      result: error ?? answer,
      session_id: session,
      total_cost_usd: turn * 0.01, // of the session, as since 2.1.277
      permission_denials:
        title === "refuses" && !isNudge ? [{ tool_name: "Bash", tool_input: { command: "make" } }] : [],
      usage,
    });
  }
  if (name === "codex") {
    if (error === null) {
      say({ type: "item.completed", item: { id: "item_1", type: "agent_message", text: answer } });
      const usage = { input_tokens: turn * 100, cached_input_tokens: turn * 60, output_tokens: turn * 10 };
      say({ type: "turn.completed", usage }); // of the thread
    } else say({ type: "turn.failed", error: { message: error } });
  }
  if (name === "gemini") {
    for (const part of answer.match(/[^]{1,4}/g) ?? [])
      say({ type: "message", role: "assistant", content: part, delta: true });
    const stats = {
      total_tokens: 110,
      input_tokens: 100,
      output_tokens: 10,
      cached: 60,
      input: 40,
      tool_calls: 1,
      models: { "gemini-small": { output_tokens: 1 }, "gemini-test-1": { output_tokens: 9 } },
    };
    say({ type: "result", status: error === null ? "success" : "error", error: { message: error }, stats });
  }
  if (name === "opencode") {
    const tokens = { input: 20, output: 4, reasoning: 1, cache: { read: 30, write: 0 } };
    for (const text of isNudge && answer === "" ? [] : ["first", answer]) {
      say({ type: "text", sessionID: session, part: { type: "text", text } });
      say({ type: "step_finish", sessionID: session, part: { type: "step-finish", tokens, cost: 0.005 } });
    }
    if (title === "refuses" && !isNudge)
      process.stderr.write(
        "\x1b[93m!\x1b[0m permission requested: external_directory (/x/*); auto-rejecting\n",
      );
    if (error !== null)
      say({ type: "error", sessionID: session, error: { name: "APIError", data: { message: error } } });
  }
  process.exit(error === null ? 0 : 1);
}

function die(code: number, message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}
