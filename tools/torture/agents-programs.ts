/**
 * The real programs of AI agents: how a scene with an imitated model gets them, what each needs to find the model, and
 * the tools with which each writes, reads and runs commands. Their versions are those of .ci/agents/package.json, which
 * npm installs into a temporary directory.
 */
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PROJECT } from "../../test/support/executable.ts";
import type { Action, Conversation } from "./agents-model.ts";
import { type Figure, notRun } from "./section.ts";

type Fields = Readonly<Record<string, unknown>>;

const PACKAGES = join(PROJECT, ".ci/agents/package.json");

/**
 * The figures that a scene, a file of this directory, prints as lines of JSON. It runs in a network namespace that has
 * only loopback, so that no program reaches its maker; its first argument is the directory of the programs.
 */
export async function playScene(
  scene: string,
  args: readonly string[],
  progress: (line: string) => void,
): Promise<readonly Figure[]> {
  const WHAT = "the programs of AI agents";
  const missing = ["npm", "node", "unshare", "ip", "git"].filter((name) => Bun.which(name) === null);
  if (missing.length > 0) return [notRun(WHAT, `needs ${missing.join(", ")}`)];
  const space = await emptyNetwork();
  if (space === null) return [notRun(WHAT, "needs a network namespace (root, or user namespaces)")];
  const directory = await install(progress);
  if (directory === null) return [notRun(WHAT, "npm could not install them")];
  const words = [...space, process.execPath, join(PROJECT, "tools/torture", scene), directory, ...args];
  const child = Bun.spawn(words, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const listen = async (): Promise<void> => {
    let rest = "";
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") progress(line);
    }
  };
  const [out, , code] = await Promise.all([child.stdout.text(), listen(), child.exited]);
  if (code !== 0) throw new Error(`the scene ended with ${code}`);
  return out.trim().split("\n").toSorted().map(figureOf);
}

/** The beginning of a command that runs in a network with nothing but loopback; null: there is none here. */
async function emptyNetwork(): Promise<readonly string[] | null> {
  for (const flags of [["-n"], ["-r", "-n"]]) {
    const words = ["unshare", ...flags, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];
    if ((await Bun.spawn([...words, "true"], { stdout: "ignore", stderr: "ignore" }).exited) === 0)
      return words;
  }
  return null;
}

/** The directory of the programs, which stays for the next run; null: they cannot be installed. */
async function install(progress: (line: string) => void): Promise<string | null> {
  const versions = Bun.hash(await Bun.file(PACKAGES).text()).toString(36);
  const directory = join(tmpdir(), `luxhub-agents-${process.getuid?.() ?? 0}-${versions}`);
  if (existsSync(join(directory, "package-lock.json"))) return directory;
  progress("npm installs the programs");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  copyFileSync(PACKAGES, join(directory, "package.json"));
  const words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", directory];
  const child = Bun.spawn(words, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [err, code] = await Promise.all([child.stderr.text(), child.exited]);
  if (code === 0) return directory;
  progress(err.slice(-500));
  return null;
}

function figureOf(line: string): Figure {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null) throw new Error(`no figure: ${line}`);
  const { what, value: found, goal, held }: Record<string, unknown> = { ...value };
  return { what: String(what), value: String(found), goal: String(goal), held: held === true };
}

/** Makes the home of a program, with its configuration; returns what its worker needs in the environment. */
export function makeHome(
  name: string,
  home: string,
  directory: string,
  model: string,
): Readonly<Record<string, string>> {
  const { env, files } = settingsOf(name, model);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), String(content));
  }
  // Codex refuses a home below the temporary directory.
  const tmp = `${home}-tmp`;
  for (const dir of [home, tmp]) mkdirSync(dir, { recursive: true });
  const PATH = `${join(directory, "node_modules/.bin")}:${process.env["PATH"]}`;
  return { TMPDIR: tmp, HOME: home, PWD: home, PATH, ...env };
}

/** What each program needs to find the model, and files of its configuration below its home. */
function settingsOf(
  name: string,
  model: string,
): { readonly env: Readonly<Record<string, string>>; readonly files: Fields } {
  const NONE = { env: {}, files: {} };
  const provider = {
    name: "imitated",
    base_url: `${model}/v1`,
    wire_api: "responses",
    env_key: "IMITATED_KEY",
  };
  const models = { "imitated-1": { name: "imitated-1", tool_call: true } };
  const settings: Readonly<Record<string, typeof NONE | ReturnType<typeof settingsOf>>> = {
    claude: {
      env: {
        ANTHROPIC_BASE_URL: model,
        ANTHROPIC_API_KEY: "imitated",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        CLAUDE_CODE_MAX_RETRIES: "1",
        DISABLE_AUTOUPDATER: "1",
        IS_SANDBOX: "1", // it may run as root
      },
      files: {},
    },
    codex: {
      env: { IMITATED_KEY: "imitated" },
      files: {
        ".codex/config.toml": [
          `model = "imitated-1"`,
          `model_provider = "imitated"`,
          "check_for_update_on_startup = false",
          "[analytics]\nenabled = false",
          "[model_providers.imitated]",
          ...Object.entries(provider).map(([key, value]) => `${key} = ${JSON.stringify(value)}`),
        ].join("\n"),
      },
    },
    gemini: {
      env: { GEMINI_API_KEY: "imitated", GOOGLE_GEMINI_BASE_URL: model },
      files: {
        ".gemini/settings.json": JSON.stringify({
          security: { auth: { selectedType: "gemini-api-key" } },
          privacy: { usageStatisticsEnabled: false },
          general: { disableAutoUpdate: true },
        }),
      },
    },
    qwen: {
      env: { OPENAI_API_KEY: "imitated", OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: "imitated-1" },
      files: {
        ".qwen/settings.json": JSON.stringify({
          security: { auth: { selectedType: "openai" } },
          privacy: { usageStatisticsEnabled: false },
          general: { disableAutoUpdate: true },
        }),
      },
    },
    copilot: {
      env: {
        COPILOT_OFFLINE: "true",
        COPILOT_PROVIDER_BASE_URL: `${model}/v1`,
        COPILOT_PROVIDER_API_KEY: "imitated",
        COPILOT_MODEL: "imitated-1",
      },
      files: {},
    },
    opencode: {
      env: {
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
      },
      files: {
        ".config/opencode/opencode.json": JSON.stringify({
          model: "imitated/imitated-1",
          provider: {
            imitated: {
              npm: "@ai-sdk/openai-compatible",
              options: { baseURL: `${model}/v1`, apiKey: "imitated" },
              models,
            },
          },
        }),
      },
    },
  };
  return settings[name] ?? NONE;
}

// ---- Their tools

/** Tools of the programs that write a file, read one, and run a command of a shell. */
export const WRITE: readonly Tool[] = [
  { name: "Write", input: (path, content) => ({ file_path: path, content }) },
  { name: "write_file", input: (path, content) => ({ file_path: path, content }) },
  { name: "write", input: (path, content) => ({ filePath: path, content }) },
  { name: "exec_command", input: (path, content) => ({ cmd: `cat > '${path}' <<'END'\n${content}END` }) },
];
export const READ: readonly Tool[] = [
  { name: "Read", input: (path) => ({ file_path: path }) },
  { name: "read_file", input: (path) => ({ file_path: path }) },
  { name: "read", input: (path) => ({ filePath: path }) },
  { name: "exec_command", input: (path) => ({ cmd: `cat '${path}'` }) },
];
export const SHELL: readonly Tool[] = [
  { name: "Bash", input: (command) => ({ command, description: "runs" }) },
  { name: "bash", input: (command) => ({ command, description: "runs" }) },
  { name: "exec_command", input: (cmd) => ({ cmd }) },
  // Without a shell a relative path shows the directory.
  { name: "list_directory", input: () => ({ dir_path: "." }) },
];
export type Tool = { readonly name: string; readonly input: (first: string, second: string) => Fields };

export function use(
  tools: readonly Tool[],
  { tools: known }: Conversation,
  first: string,
  second = "",
): Action {
  const tool = tools.find(({ name }) => known.includes(name));
  if (!tool) return { text: `There is no such tool among ${known.join(" ")}` };
  return { tool: { name: tool.name, input: tool.input(first, second) } };
}
