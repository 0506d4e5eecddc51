/**
 * install.sh of a release: chooses the executable, verifies it, and replaces an older one only by one that starts. The
 * executables are scripts here; `bun run release` runs it with a real one.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import { installScript } from "../../tools/release.ts";
import { HANG_MS } from "../support/hang.ts";
import { TempDir } from "./program.ts";

const TARGETS = ["linux-x64", "linux-x64-musl", "linux-arm64", "darwin-x64", "darwin-arm64"];
const nameOf = (target: string): string => `luxhub-${version}-${target}`;
/** What a fake executable prints as its version. */
const printed = (target: string): string => `luxhub ${version} of ${target}`;

/** The shells of this machine that an installation may run in. */
const SHELLS: readonly (readonly string[])[] = [["dash"], ["bash"], ["busybox", "sh"], ["sh"]].filter(
  ([program = ""]) => Bun.which(program) !== null,
);
const noShells = process.platform === "linux" ? null : "the paths of its tools are those of Linux";

type Ended = { readonly code: number; readonly out: readonly string[]; readonly err: string };

describe.skipIf(noShells !== null)(`install.sh${noShells === null ? "" : ` (skipped: ${noShells})`}`, () => {
  const place = new TempDir();
  const release = place.join("release");
  const script = join(release, "install.sh");
  const tools = place.join("tools");
  let runs = 0;

  beforeAll(async () => {
    mkdirSync(release);
    const sums: string[] = [];
    for (const target of TARGETS) {
      const text = `#!/bin/sh\necho "${printed(target)}"\n`;
      writeFileSync(join(release, nameOf(target)), text);
      sums.push(`${new Bun.CryptoHasher("sha256").update(text).digest("hex")}  ${nameOf(target)}\n`);
    }
    await Bun.write(script, await installScript(sums.join("")));
    mkdirSync(tools);
    const needed = ["sh", "grep", "cp", "chmod", "mv", "rm", "mkdir", "mktemp", "sleep", "cat"];
    for (const name of [...needed, "curl", "sha256sum"]) link(tools, name);
    fake(
      tools,
      "uname",
      'case $1 in -s) echo "${FAKE_SYSTEM:-Linux}" ;; -m) echo "${FAKE_MACHINE:-aarch64}" ;; esac',
    );
    fake(tools, "getconf", 'echo "${FAKE_BITS:-64}"');
    fake(tools, "ldd", 'echo "${FAKE_LDD:-ldd (GNU libc) 2.36}" >&2');
    fake(tools, "sysctl", 'echo "${FAKE_TRANSLATED:-0}"');
  });
  afterAll(() => place[Symbol.dispose]());

  function link(dir: string, name: string): void {
    symlinkSync(Bun.which(name) ?? `/nonexistent/${name}`, join(dir, name));
  }

  function fake(dir: string, name: string, text: string): void {
    writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  }

  /** A copy of the tools without some of them, and with others of this machine. */
  function toolsBut(without: readonly string[], more: readonly string[] = []): string {
    const dir = place.join(`tools-${++runs}`);
    mkdirSync(dir);
    for (const name of readdirSync(tools).filter((one) => !without.includes(one)))
      symlinkSync(join(tools, name), join(dir, name));
    for (const name of more) link(dir, name);
    return dir;
  }

  /** A directory to install into that does not exist yet. */
  const newDir = (): string => place.join(`to-${++runs}`);

  async function install(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    shell: readonly string[] = ["sh"],
    file = script,
  ): Promise<Ended> {
    const [program = "", ...words] = shell;
    const child = Bun.spawn([Bun.which(program) ?? program, ...words, file, ...args], {
      cwd: place.path,
      env: { PATH: tools, HOME: place.join("home"), ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: HANG_MS,
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, out: out.trimEnd().split("\n"), err };
  }

  /** What an installed executable prints. */
  const started = (to: string): string =>
    Bun.spawnSync([join(to, "luxhub")], { env: { PATH: "/bin:/usr/bin" } })
      .stdout.toString()
      .trim();

  /** Serves the release over HTTP; `change` may answer in its place. */
  function serve(change: (name: string) => Response | null = () => null) {
    const asked: string[] = [];
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) => {
        const name = new URL(url).pathname.split("/").at(-1) ?? "";
        asked.push(name);
        return change(name) ?? new Response(Bun.file(join(release, name)));
      },
    });
    return {
      url: `http://127.0.0.1:${server.port}/releases/`,
      asked,
      [Symbol.dispose]: () => void server.stop(true),
    };
  }

  test.each(SHELLS.map((shell) => [shell] as const))(
    "downloads, verifies and installs (%p)",
    async (shell) => {
      using server = serve();
      const to = join(newDir(), "bin");
      const ended = await install(["--to", to, server.url], {}, shell);
      const sum = new Bun.CryptoHasher("sha256")
        .update(readFileSync(join(release, nameOf("linux-arm64"))))
        .digest("hex");
      expect(ended).toEqual({
        code: 0,
        out: [
          expect.stringMatching(/^luxhub \S+ for linux-arm64, which needs a 64-bit ARM processor \(/),
          `download   ${server.url}${nameOf("linux-arm64")}`,
          `verified   SHA-256 ${sum}`,
          `installed  ${to}/luxhub`,
          `It is not in PATH yet: export PATH="${to}:$PATH"`,
        ],
        err: "",
      });
      expect(server.asked).toEqual([nameOf("linux-arm64")]);
      expect([started(to), readdirSync(to)]).toEqual([printed("linux-arm64"), ["luxhub"]]);
      expect((statSync(join(to, "luxhub")).mode & 0o777).toString(8)).toBe("755");
      // Again, from a directory, into PATH.
      const again = await install([`--to=${to}`, release], { PATH: `${to}:${tools}` }, shell);
      expect([again.code, again.out.slice(3)]).toEqual([0, [`replaced   ${to}/luxhub`]]);
    },
  );

  test("finds the executables by argument, by environment, or next to itself; installs into ~/.local/bin", async () => {
    using server = serve();
    const home = place.join("home");
    for (const [args, env, says] of [
      [[], {}, `copy       ${release}/`],
      [[], { LUXHUB_DOWNLOAD_URL: server.url }, `download   ${server.url}`],
      [[release], { LUXHUB_DOWNLOAD_URL: "http://127.0.0.1:1" }, `copy       ${release}/`],
    ] as const) {
      const { code, out, err } = await install(args, env);
      expect([code, err, out[1]]).toEqual([0, "", expect.stringContaining(says)]);
    }
    expect(readdirSync(join(home, ".local/bin"))).toEqual(["luxhub"]);
    const alone = place.join("alone.sh");
    writeFileSync(alone, readFileSync(script));
    const nowhere = await install([], {}, ["sh"], alone);
    expect([nowhere.code, nowhere.err]).toEqual([
      2,
      expect.stringMatching(/say where luxhub-\S+ is: sh install.sh URL/),
    ]);
    const homeless = await install([release], { HOME: "" });
    expect([homeless.code, homeless.err]).toEqual([2, expect.stringContaining("--to")]);
    for (const args of [["--bogus"], ["--to"], ["a", "b"]])
      expect(await install(args)).toMatchObject({ code: 2, err: expect.stringContaining("usage: ") });
    expect(await install(["--help"])).toMatchObject({ code: 0, err: "" });
  });

  test("chooses by system, processor and library, and says which processor it needs", async () => {
    for (const [env, target] of [
      [{ FAKE_MACHINE: "arm64" }, "linux-arm64"],
      [{ FAKE_MACHINE: "x86_64" }, "linux-x64"],
      [{ FAKE_MACHINE: "x86_64", FAKE_LDD: "musl libc (x86_64)" }, "linux-x64-musl"],
      [{ FAKE_SYSTEM: "Darwin", FAKE_MACHINE: "arm64" }, "darwin-arm64"],
      [{ FAKE_SYSTEM: "Darwin", FAKE_MACHINE: "x86_64" }, "darwin-x64"],
      // A shell that macOS translates for another processor.
      [{ FAKE_SYSTEM: "Darwin", FAKE_MACHINE: "x86_64", FAKE_TRANSLATED: "1" }, "darwin-arm64"],
    ] as const) {
      const needs = target.includes("arm64")
        ? "a 64-bit ARM processor"
        : "a 64-bit x86 processor with SSE4.2";
      const to = newDir();
      const { code, out, err } = await install(["--to", to, release], env);
      expect([code, err, out[0]]).toEqual([
        0,
        "",
        expect.stringContaining(`luxhub ${version} for ${target}, which needs ${needs}`),
      ]);
      expect(started(to)).toBe(printed(target));
    }
  });

  test("installs nothing on a machine that it does not know", async () => {
    for (const [env, says] of [
      [{ FAKE_SYSTEM: "SunOS" }, "there is no executable for SunOS"],
      [{ FAKE_SYSTEM: "MINGW64_NT-10.0" }, `download luxhub-${version}-windows-x64.exe`],
      [{ FAKE_MACHINE: "riscv64" }, "there is no executable for Linux on riscv64"],
      [{ FAKE_MACHINE: "armv7l" }, "there is no executable for Linux on armv7l"],
      [{ FAKE_BITS: "32" }, "this system is a 32-bit one"],
      [{ FAKE_LDD: "musl libc (aarch64)" }, `luxhub ${version} has no executable for linux-arm64-musl`],
    ] as const) {
      const to = newDir();
      const ended = await install(["--to", to, release], env);
      expect([ended.code, ended.err]).toEqual([1, expect.stringContaining(says)]);
      expect(existsSync(to)).toBe(false);
    }
  });

  const unshare = process.getuid?.() === 0 ? Bun.which("unshare") : null;
  test.skipIf(unshare === null)(
    `refuses an x86 processor without SSE4.2${unshare === null ? " (skipped: needs root and unshare)" : ""}`,
    async () => {
      const cpuinfo = place.join("cpuinfo");
      const on = async (flags: string): Promise<Ended> => {
        writeFileSync(cpuinfo, `processor : 0\nflags : ${flags}\n`);
        const mounted = 'mount --bind "$1" /proc/cpuinfo && shift && PATH=$TOOLS exec sh "$@"';
        const shell = [unshare ?? "", "--mount", "/bin/sh", "-c", mounted, "sh", cpuinfo];
        const env = { FAKE_MACHINE: "x86_64", PATH: process.env["PATH"] ?? "", TOOLS: tools };
        return install(["--to", newDir(), release], env, shell);
      };
      expect(await on("fpu sse4_1 sse4_2 popcnt")).toMatchObject({ code: 0, err: "" });
      const refused = await on("fpu sse4_1");
      expect(refused).toMatchObject({
        code: 1,
        err: expect.stringContaining("this processor has no SSE4.2"),
      });
      expect(refused.out).toHaveLength(1);
    },
  );

  test("does not install what is damaged, cut short or missing, and keeps the older luxhub", async () => {
    const to = newDir();
    mkdirSync(to);
    writeFileSync(join(to, "luxhub"), "#!/bin/sh\necho older\n", { mode: 0o755 });
    const keepsOlder = (): void => {
      expect([started(to), readdirSync(to)]).toEqual(["older", ["luxhub"]]);
    };
    const other = () => new Response("#!/bin/sh\necho other\n");
    for (const [change, says] of [
      [other, `luxhub-${version}-linux-arm64 is damaged or not of this release: its SHA-256 is`],
      [() => new Response("no", { status: 404 }), "cannot be downloaded"],
    ] as const) {
      using server = serve(change);
      const ended = await install(["--to", to, server.url]);
      expect([ended.code, ended.err]).toEqual([1, expect.stringContaining(says)]);
      keepsOlder();
    }
    // Announces more bytes than it sends before it closes.
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n#!/bin/sh\n";
    const half = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void socket.end(head) },
    });
    const cut = await install(["--to", to, `http://127.0.0.1:${half.port}`]);
    half.stop(true);
    expect([cut.code, cut.err]).toEqual([1, expect.stringContaining("cannot be downloaded")]);
    const unreachable = await install(["--to", to, "http://127.0.0.1:1"]);
    expect([unreachable.code, unreachable.err]).toEqual([1, expect.stringContaining("cannot be downloaded")]);
    const absent = await install(["--to", to, place.join("none")]);
    expect([absent.code, absent.err]).toEqual([1, expect.stringContaining("there is no file")]);
    keepsOlder();
  });

  test("does not replace an older luxhub by one that does not start", async () => {
    const to = newDir();
    const broken = place.join("broken");
    mkdirSync(broken);
    const text = "#!/bin/sh\necho 'no such library' >&2\nexit 127\n";
    writeFileSync(join(broken, nameOf("linux-arm64")), text);
    const sum = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    writeFileSync(join(broken, "install.sh"), await installScript(`${sum}  ${nameOf("linux-arm64")}\n`));
    const ended = await install(["--to", to], {}, ["sh"], join(broken, "install.sh"));
    expect([ended.code, ended.err]).toEqual([
      1,
      expect.stringMatching(/does not start here, .*no such library/),
    ]);
    expect(readdirSync(to)).toEqual([]);
  });

  test("needs a tool that downloads and one that verifies, and takes the others there are", async () => {
    using server = serve();
    const to = newDir();
    const noDownload = await install(["--to", to, server.url], { PATH: toolsBut(["curl"]) });
    expect([noDownload.code, noDownload.err]).toEqual([1, expect.stringContaining("needs curl or wget")]);
    const noSum = await install(["--to", to, server.url], { PATH: toolsBut(["sha256sum"]) });
    expect([noSum.code, noSum.err]).toEqual([1, expect.stringContaining("no tool for SHA-256")]);
    expect(existsSync(join(to, "luxhub"))).toBe(false);
    const others: readonly (readonly [string, readonly string[]])[] = [
      ["sha256sum", ["shasum", "perl"]],
      ["sha256sum", ["openssl"]],
      ["curl", ["wget"]],
    ];
    for (const [without, more] of others.filter(([, names]) =>
      names.every((name) => Bun.which(name) !== null),
    )) {
      using another = serve(() => new Response("other"));
      const path = { PATH: toolsBut([without], more) };
      expect(await install(["--to", newDir(), server.url], path)).toMatchObject({ code: 0 });
      expect(await install(["--to", newDir(), another.url], path)).toMatchObject({
        code: 1,
        err: expect.stringContaining("its SHA-256 is"),
      });
    }
  });

  test("says that it cannot write, before it downloads", async () => {
    using server = serve();
    const folder = newDir();
    mkdirSync(join(folder, "luxhub"), { recursive: true });
    for (const [to, says] of [
      ["/proc/none/bin", "/proc/none/bin cannot be made"],
      ["/proc/self", "cannot be written"],
      [folder, `${folder}/luxhub is a directory`],
    ] as const) {
      const ended = await install(["--to", to, server.url]);
      expect([ended.code, ended.err]).toEqual([1, expect.stringContaining(says)]);
    }
    expect(server.asked).toEqual([]);
  });

  test("names another luxhub that is earlier in PATH", async () => {
    const to = newDir();
    const earlier = newDir();
    mkdirSync(earlier);
    fake(earlier, "luxhub", "true");
    const { out } = await install(["--to", to, release], { PATH: `${earlier}:${to}:${tools}` });
    expect(out.at(-1)).toBe(`Another luxhub is earlier in PATH: ${earlier}/luxhub`);
  });

  test("does nothing when it arrives only in part, and leaves nothing when it is interrupted", async () => {
    const part = place.join("part.sh");
    const text = readFileSync(script, "utf8");
    writeFileSync(part, text.slice(0, text.lastIndexOf("main")));
    const to = newDir();
    expect(await install(["--to", to, release], {}, ["sh"], part)).toEqual({ code: 0, out: [""], err: "" });
    expect(existsSync(to)).toBe(false);

    const arrived = Promise.withResolvers<void>();
    using server = serve(() => {
      arrived.resolve();
      return new Response(new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array(1)) }));
    });
    const child = Bun.spawn(["sh", script, "--to", to, server.url], {
      env: { PATH: tools },
      stdout: "ignore",
      stderr: "ignore",
      detached: true, // a group, as Ctrl-C in a terminal reaches it
    });
    await arrived.promise;
    process.kill(-child.pid, "SIGINT");
    expect(await child.exited).toBe(130);
    expect(readdirSync(to)).toEqual([]);
  });

  const shellcheck = Bun.which("shellcheck");
  test.skipIf(shellcheck === null)(
    `is what shellcheck accepts${shellcheck === null ? " (skipped: no shellcheck here)" : ""}`,
    () => {
      chmodSync(script, 0o755);
      const { stdout, exitCode } = Bun.spawnSync([shellcheck ?? "", "--shell=sh", script]);
      expect([stdout.toString(), exitCode]).toEqual(["", 0]);
    },
  );
});
