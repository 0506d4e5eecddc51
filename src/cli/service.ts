/**
 * `luxhub service`: runs the hub as a systemd service: installs the program, its user, a file for its settings and
 * secrets, and a hardened unit; removes the unit and keeps the hub's data.
 *
 * With DESTDIR, the convention of packagers, it only writes the files below that directory.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Environment } from "../config.ts";
import { reasonOf } from "../lib/reason.ts";
import type { LocalRuns } from "./run.ts";
import { writeLine, writeLineUnlessClosed } from "./standard-output.ts";

const PROGRAM = "/usr/local/bin/luxhub";
const UNIT = "/etc/systemd/system/luxhub.service";
const ENVIRONMENT = "/etc/luxhub/environment";
const DATA = "/var/lib/luxhub";
const USER = "luxhub";
const NAME = "luxhub.service";
const SYSTEMD_RUNS = "/run/systemd/system";

/**
 * A user of its own and not DynamicUser: `sudo -u luxhub luxhub doctor` and backup must be able to read the data
 * directory. MemoryDenyWriteExecute is left out because JavaScript is compiled while it runs. AF_NETLINK lets the
 * program find the addresses of the machine. TimeoutStopSec: requests end within 4 s, and a chore ends its current
 * step.
 */
const UNIT_TEXT = `[Unit]
Description=luxhub, a task queue and message hub for AI agents and other workers
After=network-online.target time-sync.target
Wants=network-online.target time-sync.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${PROGRAM} serve --data ${DATA} --log json
EnvironmentFile=-${ENVIRONMENT}
User=${USER}
Group=${USER}
WorkingDirectory=${DATA}
StateDirectory=luxhub
StateDirectoryMode=0700
UMask=0077
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2
TimeoutStopSec=15
LimitNOFILE=65536
LimitCORE=0

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
PrivateUsers=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
KeyringMode=private
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallFilter=@chown

[Install]
WantedBy=multi-user.target
`;

const ENVIRONMENT_TEXT = `# Settings and secrets of the service luxhub, one NAME=value per line; luxhub serve --help lists them.
# After a change: systemctl restart luxhub
#LUXHUB_PORT=19104
#LUXHUB_PRIVATE=true
# Without these the hub makes its secrets at the first start and keeps them in ${DATA}.
#LUXHUB_SECRET=
#LUXHUB_ADMIN_KEY=
`;

export const LOCAL_RUNS: LocalRuns = {
  "service install": (_, env) => serviceFor("service install", env).install(),
  "service print": () => writeLineUnlessClosed(UNIT_TEXT.trimEnd()),
  "service remove": (_, env) => serviceFor("service remove", env).remove(),
};

function serviceFor(name: string, env: Environment): Service {
  const root = env["DESTDIR"] || null;
  if (process.platform === "win32" || (root === null && process.platform !== "linux"))
    throw new Error("only Linux has systemd services");
  if (root === null && process.getuid?.() !== 0)
    throw new Error(`${name} changes the system and needs root: run it with sudo`);
  return new Service(root);
}

class Service {
  /** Files are written below it; null: the system itself. */
  readonly #root: string | null;

  constructor(root: string | null) {
    this.#root = root;
  }

  install(): number {
    const program = this.#installProgram();
    if (this.#root === null) addUser();
    this.#addFile(ENVIRONMENT, ENVIRONMENT_TEXT, 0o600);
    const unit = this.#write(UNIT, Buffer.from(UNIT_TEXT), 0o644);
    if (this.#root !== null) return 0;
    if (!existsSync(SYSTEMD_RUNS)) {
      writeLine(
        `systemd does not run here; where it runs, start the hub with systemctl enable --now ${NAME}`,
      );
      return 0;
    }
    run("systemctl", "daemon-reload");
    run("systemctl", "enable", "--quiet", NAME);
    run("systemctl", program || unit ? "restart" : "start", NAME);
    writeLine(`runs       ${NAME}, now and after each start of the machine`);
    writeLine(`Its secrets are in ${DATA}/secret and ${DATA}/admin-key. Its log: journalctl -u luxhub`);
    return 0;
  }

  remove(): number {
    const unit = this.#at(UNIT);
    if (!existsSync(unit)) writeLine(`not there  ${unit}`);
    else {
      const runs = this.#root === null && existsSync(SYSTEMD_RUNS);
      if (runs) run("systemctl", "disable", "--quiet", "--now", NAME);
      rmSync(unit);
      writeLine(`removed    ${unit}`);
      if (runs) run("systemctl", "daemon-reload");
    }
    writeLine(
      `left       ${[DATA, ENVIRONMENT, PROGRAM].map((path) => this.#at(path)).join(", ")}, and the user ${USER}`,
    );
    return 0;
  }

  #at(path: string): string {
    return this.#root === null ? path : join(this.#root, path);
  }

  /** Unless the installed executable is the same. Returns whether it copied. */
  #installProgram(): boolean {
    if (!Bun.isStandaloneExecutable)
      throw new Error(
        "service install needs the executable: bun run build, then sudo dist/luxhub service install",
      );
    return this.#write(PROGRAM, readFileSync(process.execPath), 0o755);
  }

  /** Atomically, unless it is the same already. Returns whether it wrote. */
  #write(name: string, bytes: Buffer, mode: number): boolean {
    const path = this.#at(name);
    try {
      if (existsSync(path) && readFileSync(path).equals(bytes) && (statSync(path).mode & 0o7777) === mode) {
        writeLine(`unchanged  ${path}`);
        return false;
      }
      mkdirSync(dirname(path), { recursive: true });
      const unfinished = `${path}.new`;
      rmSync(unfinished, { force: true });
      const file = openSync(unfinished, "wx", mode);
      try {
        for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      chmodSync(unfinished, mode); // independent of the umask
      renameSync(unfinished, path);
    } catch (error) {
      throw new Error(`cannot write ${path}: ${reasonOf(error)}`, { cause: error });
    }
    writeLine(`written    ${path}`);
    return true;
  }

  /** For the operator to edit: an existing file keeps its content. */
  #addFile(name: string, text: string, mode: number): void {
    const path = this.#at(name);
    if (!existsSync(path)) return void this.#write(name, Buffer.from(text), mode);
    chmodSync(path, mode);
    writeLine(`kept       ${path}`);
  }
}

function addUser(): void {
  if (Bun.spawnSync(["id", "-u", USER]).exitCode === 0) {
    writeLine(`unchanged  user ${USER}`);
    return;
  }
  run(
    "useradd",
    "--system",
    "--user-group",
    "--no-create-home",
    "--home-dir",
    DATA,
    "--shell",
    "/usr/sbin/nologin",
    USER,
  );
  writeLine(`written    user ${USER}`);
}

function run(program: string, ...words: readonly string[]): void {
  const path = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
  const programPath = Bun.which(program, { PATH: path });
  if (programPath === null) throw new Error(`${program} is not on this system`);
  const ended = Bun.spawnSync([programPath, ...words], { stdout: "inherit", stderr: "inherit" });
  if (ended.exitCode !== 0) throw new Error(`${[program, ...words].join(" ")} failed`);
}
