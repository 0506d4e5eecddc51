/**
 * Mistakes and unusual setups of an operator: certificates, addresses, paths, targets of a backup, permissions. Each
 * mistake is one line that names the file or the setting, with the exit code of its kind; every usable setup works.
 */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { OWN_HOST, freePort } from "../support/keeper.ts";
import { SmallDisk, whyNoSmallDisk } from "../support/small-disk.ts";
import { PROGRAM } from "../support/executable.ts";
import {
  type Ended,
  Hub,
  Program,
  type ProgramOptions,
  SECRET,
  TempDir,
  objectOf,
  run,
  withoutProgress,
  until,
} from "./program.ts";

const openssl = Bun.which("openssl");

/** A refusal: its code, and its one line without the program's name. */
async function refusal(
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<[number | null, string]> {
  const { code, stdout, stderr }: Ended = await run(args, options);
  expect(stdout).toBe("");
  const line = withoutProgress(stderr);
  expect(line).toMatch(/^luxhub: [^\n]+\n$/);
  return [code, line.slice("luxhub: ".length, -1)];
}

describe("the certificate of a TLS listener", () => {
  /** A certificate and its key in NAME.pem and NAME-key.pem. */
  function makePair(dir: TempDir, name: string): void {
    const files = [
      "-keyout",
      `${name}-key.pem`,
      "-out",
      `${name}.pem`,
      "-days",
      "2",
      "-subj",
      "/CN=localhost",
    ];
    const words = [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      ...files,
    ];
    expect(Bun.spawnSync([openssl ?? "", ...words], { cwd: dir.path }).exitCode).toBe(0);
  }

  test.skipIf(openssl === null)(
    `that is unusable is named with its setting${openssl === null ? " (there is no openssl to make one with)" : ""}`,
    async () => {
      using dir = new TempDir();
      makePair(dir, "one");
      makePair(dir, "other");
      const encrypt = [
        "pkcs8",
        "-topk8",
        "-in",
        "one-key.pem",
        "-out",
        "locked.pem",
        "-passout",
        "pass:word",
      ];
      expect(Bun.spawnSync([openssl ?? "", ...encrypt], { cwd: dir.path }).exitCode).toBe(0);
      writeFileSync(dir.join("empty.pem"), "");
      writeFileSync(dir.join("cut.pem"), readFileSync(dir.join("one.pem")).subarray(0, 200));
      const rows: readonly (readonly [cert: string, key: string, says: string])[] = [
        ["none.pem", "one-key.pem", "cannot read none.pem (--tls-cert): no such file or directory"],
        ["one.pem", "none.pem", "cannot read none.pem (--tls-key): no such file or directory"],
        ["one.pem", ".", "cannot read . (--tls-key): illegal operation on a directory"],
        [
          "empty.pem",
          "one-key.pem",
          "cannot use empty.pem (--tls-cert): it is not a complete certificate in PEM form",
        ],
        [
          "cut.pem",
          "one-key.pem",
          "cannot use cut.pem (--tls-cert): it is not a complete certificate in PEM form",
        ],
        [
          "one-key.pem",
          "one.pem",
          "cannot use one-key.pem (--tls-cert): it is not a complete certificate in PEM form",
        ],
        [
          "one.pem",
          "one.pem",
          "cannot use one.pem (--tls-key): it is not a complete private key in PEM form",
        ],
        ["one.pem", "locked.pem", "cannot use locked.pem (--tls-key): it is encrypted; "],
        [
          "one.pem",
          "other-key.pem",
          "cannot use one.pem (--tls-cert) with other-key.pem (--tls-key): the key does not belong to the certificate",
        ],
      ];
      for (const [cert, key, says] of rows) {
        const args = ["--tls-cert", cert, "--tls-key", key, "--listen", "A+tls:127.0.0.1:0", "--port", "0"];
        const [code, line] = await refusal(["serve", ...args], { cwd: dir.path });
        const failed = says.startsWith("cannot read"); // the file; else what is in it
        expect([code, line.slice(0, says.length)]).toEqual([failed ? 1 : 2, says]);
      }
      expect(readdirSync(dir.join("luxhub-data"))).not.toContain("secret"); // nobody has seen it
    },
  );

  test("that no listener uses is reported in the log", async () => {
    using dir = new TempDir();
    writeFileSync(dir.join("any.pem"), "");
    await using hub = await Hub.start({ cwd: dir.path, args: ["--tls-cert=any.pem", "--tls-key=any.pem"] });
    await hub.program.printed(/warn {2}no listener speaks TLS needed="--listen with \+tls/);
  });
});

const hasIp6 = Object.values(networkInterfaces()).some((ips) =>
  ips?.some(({ address }) => address === "::1"),
);

describe("permissions of files", () => {
  const serve = ["serve", "--port", "0", "--host", "127.0.0.1"];

  test("is refused if everybody may write it", async () => {
    using dir = new TempDir();
    mkdirSync(dir.join("luxhub-data"), { mode: 0o700 });
    writeFileSync(dir.join("luxhub-data", "secret"), "a-secret-of-many-letters\n", { mode: 0o600 });
    writeFileSync(dir.join("luxhub.toml"), "variant = 'B'\n", { mode: 0o600 });
    writeFileSync(dir.join("key.pem"), "");
    for (const [path, what, args] of [
      ["luxhub.toml", "the configuration file luxhub.toml", []],
      ["luxhub-data", `the data directory ${dir.join("luxhub-data")}`, []],
      ["luxhub-data/secret", `the secret file ${dir.join("luxhub-data", "secret")}`, []],
      ["key.pem", "the file of --tls-key key.pem", ["--tls-key=key.pem", "--tls-cert=key.pem"]],
    ] as const) {
      const mode = statSync(dir.join(path)).mode;
      chmodSync(dir.join(path), mode | 0o002);
      const [code, line] = await refusal([...serve, ...args], { cwd: dir.path });
      expect([code, line.startsWith(`everybody may write ${what}: change that with chmod o-w `)]).toEqual([
        1,
        true,
      ]);
      chmodSync(dir.join(path), mode);
    }
  });

  test("is a warning at the start and in doctor when a group may write it, or others may read a secret", async () => {
    using dir = new TempDir();
    await using first = await Hub.start({ cwd: dir.path, ownSecrets: false });
    expect(first.program.stdout).not.toContain(" warn ");
    await first.stop();
    expect((await run(["doctor"], { cwd: dir.path })).stdout).toMatch(/ok {4}secrets .*\n.*: all is well\n$/);
    chmodSync(dir.join("luxhub-data"), 0o770);
    chmodSync(dir.join("luxhub-data", "secret"), 0o644);
    chmodSync(dir.join("luxhub-data", "admin-key"), 0o660);
    writeFileSync(dir.join("luxhub.toml"), "redis = 'redis://:pass@127.0.0.1:1'\n");
    chmodSync(dir.join("luxhub.toml"), 0o664);
    const data = dir.join("luxhub-data");
    const own = [
      `a group may write the data directory ${data}`,
      `everybody may read the secret file ${join(data, "secret")}`,
      `a group may write the secret file ${join(data, "admin-key")}`,
    ];
    const all = [...own, "a group may write the configuration file luxhub.toml"];
    await using hub = await Hub.start({ cwd: dir.path, ownSecrets: false });
    for (const warning of [...all, "everybody may read the configuration file luxhub.toml"])
      await hub.program.printed(new RegExp(` warn {2}${RegExp.escape(warning)}\\n`));
    expect(hub.program.stdout).not.toContain("pass@");
    const { code, stdout } = await run(["doctor"], { cwd: dir.path });
    for (const warning of own)
      expect(stdout).toMatch(new RegExp(`^warn  secrets {6}${RegExp.escape(warning)}$`, "m"));
    expect([code, stdout.endsWith(": all is well, 3 warnings\n")]).toEqual([0, true]);
  });

  test("a secret of fewer than 16 characters is a warning at every start, in doctor and in the log", async () => {
    using dir = new TempDir();
    const text = (what: string): string =>
      `${what} has fewer than 16 characters and can be guessed: change it`;
    const env = { LUXHUB_SECRET: "a9", LUXHUB_ADMIN_KEY: "fifteen-letters" };
    for (const form of ["pretty", "json", "pretty"]) {
      const args = [...serve, "--data", dir.join("data"), "--log", form];
      await using hub = new Program(args, { env });
      for (const what of ["the secret", "the administrator key"]) await hub.printed(new RegExp(text(what)));
      expect(hub.stdout).not.toMatch(/fifteen-letters|\ba9\b/);
    }
    const { code, stdout } = await run(["doctor", "--data", dir.join("data")], { env });
    expect([code, stdout.includes(`warn  secrets      ${text("the secret")}\n`)]).toEqual([0, true]);
    const long = { LUXHUB_SECRET: "sixteen-letters.", LUXHUB_ADMIN_KEY: "sixteen.letters." };
    expect((await run(["doctor", "--data", dir.join("data")], { env: long })).stdout).not.toContain("warn ");
  });
});

describe("addresses", () => {
  test.skipIf(!hasIp6)(
    `of IPv6, in brackets or not${hasIp6 ? "" : " (this machine has no ::1)"}`,
    async () => {
      using dir = new TempDir();
      for (const host of ["::1", "[::1]"]) {
        const args = ["--host", host, "--listen", "B:[::1]:0"];
        await using hub = await Hub.start({ data: dir.join("it's data"), args, ownSecrets: false });
        expect(hub.listeners.map(({ url }) => url.replace(/\d+$/, ""))).toEqual([
          "http://[::1]:",
          "http://[::1]:",
        ]);
        for (const line of hub.program.stdout.split("\n").filter((one) => one.includes("curl "))) {
          const shell = Bun.spawn(["sh", "-c", line], { cwd: "/", stderr: "ignore" });
          expect(objectOf(await shell.stdout.text())).toMatchObject({ success: true });
        }
        await hub.stop();
      }
    },
  );

  test("that the hub cannot listen on", async () => {
    using dir = new TempDir();
    const serve = ["serve", "--data", dir.join("data"), "--port", "1"];
    expect(await refusal([...serve, "--host", "192.0.2.1"])).toEqual([
      1,
      "cannot listen on 192.0.2.1:1: this machine has no such address",
    ]);
    const [code, line] = await refusal([...serve, "--host", "[2001:db8::1]"]);
    expect([code, line]).toEqual([1, expect.stringMatching(/^cannot listen on \[2001:db8::1\]:1: /)]);
  });
});

describe("the data directory", () => {
  test("with a name that is not UTF-8 is refused", async () => {
    using dir = new TempDir();
    const shell = (script: string) => ({ command: ["sh", "-c", script, ...PROGRAM], cwd: dir.path });
    const named = shell(String.raw`exec "$0" "$@" --data "$(printf 'a\377')"`);
    const above = shell(String.raw`mkdir "$(printf 'b\377')" && cd "$(printf 'b\377')" && exec "$0" "$@"`);
    expect(await refusal(["serve", "--port", "0"], named)).toEqual([
      2,
      '--data is "a\ufffd"; it must be a path in UTF-8, without control characters',
    ]);
    const [code, line] = await refusal(["serve", "--port", "0"], above);
    expect([code, line]).toEqual([
      2,
      expect.stringMatching(/^the data directory .* must lie under names in UTF-8/),
    ]);
    expect(readdirSync(dir.path, { encoding: "buffer" })).toHaveLength(1); // what the shell has made
  });

  test("is the same whether relative, with a trailing slash or through a link", async () => {
    using dir = new TempDir();
    mkdirSync(dir.join("real"));
    symlinkSync("real", dir.join("link"));
    await using hub = await Hub.start({ cwd: dir.path, data: "link/../real//" });
    expect(hub.program.stdout).toContain(`  Data        ${dir.join("real")}\n`);
    const [code, line] = await refusal(["serve", "--port", "0", "--data", "./link/"], { cwd: dir.path });
    expect([code, line]).toEqual([1, `another luxhub runs on the data directory ${dir.join("link")}`]);
  });

  test("is refused when it is not a directory", async () => {
    using dir = new TempDir();
    const made = (name: string, ...inside: readonly string[]): string => {
      mkdirSync(dir.join(name, ...inside), { recursive: true });
      return dir.join(name);
    };
    symlinkSync("nothing", dir.join("dangling"));
    const database = made("database", "luxhub.db");
    const files = made("files");
    writeFileSync(`${files}/files`, "");
    const rows: readonly (readonly [data: string, code: number, says: string])[] = [
      [database, 1, `cannot open the database ${database}/luxhub.db: `],
      [files, 1, `cannot list ${files}/files: not a directory`],
      [made("lock", "lock"), 1, `cannot use ${dir.join("lock", "lock")} as a lock: `],
      [
        made("secret", "secret"),
        1,
        `cannot read ${dir.join("secret", "secret")}: illegal operation on a directory`,
      ],
      [
        dir.join("dangling"),
        1,
        `cannot create the data directory ${dir.join("dangling")}: it exists and is not `,
      ],
    ];
    for (const [data, code, says] of rows) {
      const [ended, line] = await refusal(["serve", "--port", "0", "--data", data]);
      expect([ended, line.slice(0, says.length)]).toEqual([code, says]);
    }
  });
});

test("a luxhub.toml that is a dangling link is an error, not a missing file", async () => {
  using dir = new TempDir();
  symlinkSync("/nowhere/luxhub.toml", dir.join("luxhub.toml"));
  expect(await refusal(["serve", "--port", "0"], { cwd: dir.path })).toEqual([
    1,
    "cannot read luxhub.toml: no such file or directory",
  ]);
});

test("errors name the database's host, port and name, never its password", async () => {
  using dir = new TempDir();
  const rows = [
    ["postgres://u:hush@127.0.0.1:1/hub", "127.0.0.1:1/hub"],
    ["postgres://u:5/hush@127.0.0.1:1/hub", "the address"], // a "/" that should have been escaped
    ["postgres://u:5?hush@127.0.0.1:1/hub", "the address"],
  ] as const;
  for (const [url, place] of rows) {
    const env = { LUXHUB_DATABASE: url, LUXHUB_PORT: "0" };
    const [code, line] = await refusal(["serve", "--data", dir.join("data")], { env });
    expect(code).toBe(1);
    expect(line).toStartWith("PostgreSQL cannot be ");
    expect(line).toEndWith(`(${place}, of --database or LUXHUB_DATABASE)`);
  }
});

describe("a backup that cannot be written", () => {
  test("is one line with the path, and leaves nothing", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    await using _hub = await Hub.start({ data });
    writeFileSync(dir.join("file"), "");
    symlinkSync("nothing", dir.join("dangling"));
    const rows: readonly (readonly [to: string, says: string])[] = [
      ["none/hub.tar", "cannot write none/hub.tar: no such file or directory"],
      ["file/hub.tar", "cannot write file/hub.tar: not a directory"],
      ["file", "file already exists; choose another name"],
      ["dangling", "dangling already exists; choose another name"],
      ["data", "data already exists; choose another name"],
      ["x".repeat(255), `cannot write ${"x".repeat(255)}: name too long`],
    ];
    for (const [to, says] of rows) {
      const [code, line] = await refusal(["backup", to, "--data", data], { cwd: dir.path });
      expect([code, line.replaceAll(`${dir.path}/`, "")]).toEqual([1, says]);
    }
    expect(readdirSync(dir.path).toSorted()).toEqual(["dangling", "data", "file"]);
  });

  test("to a disk that is full or read-only, nor is a restore to one", async () => {
    using dir = new TempDir();
    const why = await whyNoSmallDisk(dir.join("try"));
    if (why !== null) {
      console.log(`left out, a backup to a full disk: ${why}`);
      return;
    }
    const data = dir.join("data");
    const to = dir.join("disk", "hub.tar");
    await using hub = await Hub.start({ data });
    const body = new FormData();
    body.append("file", new Blob([new Uint8Array(4 * 1024 * 1024)]), "large");
    expect((await hub.call("POST", "/file/upload", { body })).status).toBe(200);
    await using disk = await SmallDisk.mount(dir.join("disk"));
    const inside = { command: disk.command(PROGRAM) };
    const full = `cannot write ${to}: no space left on device`;
    // There is no room for the database, and then for that but not for the file.
    for (const left of [0, 2 * 1024 * 1024]) {
      disk.free();
      disk.fill(left);
      expect(await refusal(["backup", to, "--data", data], inside)).toEqual([1, full]);
      expect(readdirSync(disk.inside(disk.path))).toEqual(["ballast"]);
    }
    expect((await run(["backup", dir.join("hub.tar"), "--data", data])).code).toBe(0);
    const into = dir.join("disk", "hub");
    const restore = ["restore", dir.join("hub.tar"), "--data", into];
    expect(await refusal(restore, inside)).toEqual([
      1,
      `the disk of ${into} is full: make room, then run it again`,
    ]);
    expect(readdirSync(disk.inside(disk.path))).toEqual(["ballast"]);
    disk.free();
    const remount = Bun.spawnSync([...disk.command(["mount", "-o", "remount,ro", disk.path])]);
    expect(remount.exitCode).toBe(0);
    expect(await refusal(["backup", to, "--data", data], inside)).toEqual([
      1,
      `cannot write ${to}: read-only file system`,
    ]);
    expect(await refusal(["serve", "--port", "0", "--data", disk.path], inside)).toEqual([
      1,
      `cannot write into the data directory ${disk.path}: read-only file system`,
    ]);
  });
});

test("starts under a service manager: no open files, no home, in /, a low file limit, any umask", async () => {
  using dir = new TempDir();
  for (const umask of ["000", "777"]) {
    const data = dir.join(umask, "data");
    const port = String(freePort());
    const script = `umask ${umask}; ulimit -n 64; exec "$0" "$@" <&- >&- 2>&-`;
    const env = {
      PATH: "",
      LUXHUB_SECRET: SECRET,
      LUXHUB_PORT: port,
      LUXHUB_HOST: OWN_HOST,
      TZ: "Mars/Base",
      LC_ALL: "C",
    };
    const command = ["/bin/sh", "-c", `unset HOME; ${script}`, ...PROGRAM];
    await using program = new Program(["serve", "--data", data], { command, env, cwd: "/" });
    await until(() =>
      fetch(`http://${OWN_HOST}:${port}/api/v1/status`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
    const modes = Bun.spawnSync(["find", data, "-perm", "/077"]).stdout.toString();
    expect(modes).toBe(""); // nothing is for others
    program.child.kill("SIGTERM");
    expect(await program.ended).toBe(0);
  }
});

test("SIGTERM ends a hub in time when what it waits for never comes", async () => {
  using dir = new TempDir();
  const connected = Promise.withResolvers<void>();
  using silent = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { open: () => connected.resolve(), data: () => {} },
  });
  const env = {
    S3_ENDPOINT: `http://127.0.0.1:${silent.port}`,
    S3_ACCESS_KEY_ID: "a",
    S3_SECRET_ACCESS_KEY: "b",
  };
  await using hub = await Hub.start({ data: dir.join("data"), args: ["--backup-to", "s3://bucket/x"], env });
  await connected.promise;
  expect(await hub.stop()).toEqual({ code: 0 });
  expect(hub.program.stdout).toContain("ended without order");
});
