/** How `bun run release` starts the executables, what it says of those that it cannot start, and the image. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { EXECUTABLE } from "../support/executable.ts";
import { loadAlignments, tryOut, waysToRun } from "../../tools/release-trial.ts";
import { formulaOf, makeDebian } from "../../tools/packages.ts";
import { extras } from "../../tools/release.ts";
import { TempDir } from "./program.ts";

const isLinux = process.platform === "linux";
const has = (): boolean => true;
const hasNot = (): boolean => false;
const found = (name: string): string => `/bin/${name}`;
const missing = (): null => null;

test.skipIf(!isLinux || process.arch !== "x64")(
  `each executable is started in the ways that a machine has${isLinux ? "" : " (skipped: not Linux on x64)"}`,
  () => {
    const here = { name: "this machine", words: [] };
    const nehalem = { name: "a Nehalem (qemu)", words: ["/bin/qemu-x86_64-static", "-cpu", "Nehalem"] };
    expect(waysToRun("linux-x64", has, found)).toEqual([here, nehalem]);
    expect(waysToRun("linux-x64", hasNot, missing)).toEqual([here]);
    expect(waysToRun("linux-x64-musl", has, found)).toEqual([here]);
    expect(waysToRun("linux-x64-musl", hasNot, found)).toBe(
      "this machine has no musl loader (/lib/ld-musl-x86_64.so.1)",
    );
    const arm64 = { name: "arm64 (qemu)", words: ["/bin/qemu-aarch64-static"] };
    expect(waysToRun("linux-arm64", hasNot, found)).toEqual([arm64]);
    expect(waysToRun("linux-arm64", has, missing)).toBe("no qemu-user-static here");
    expect(waysToRun("darwin-arm64", has, found)).toBe("this machine runs linux");
    expect(waysToRun("windows-x64", has, found)).toEqual([{ name: "Wine", words: ["/bin/wine"] }]);
    expect(waysToRun("windows-x64", has, missing)).toBe("there is no Wine here");
  },
);

test.skipIf(!isLinux)(
  `an executable passes its trial when its hub and its worker do a task${isLinux ? "" : " (skipped: not Linux)"}`,
  async () => {
    using dir = new TempDir();
    const target = `linux-${process.arch}-here`;
    const [passed, ...others] = await tryOut(target, EXECUTABLE);
    expect(others).toEqual([]);
    expect(passed).toEqual({ text: "on this machine: started, did a task, ended with 0", isFault: false });
    const broken = dir.join("broken");
    for (const [text, says] of [
      ["exit 3", "on this machine: version ended with 3: "],
      ['[ "$1" = version ]', "on this machine: serve ended before it was ready: "],
    ] as const) {
      writeFileSync(broken, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
      expect(await tryOut(target, broken)).toEqual([{ text: says, isFault: true }]);
    }
    writeFileSync(broken, "#!/bin/sh\necho 'Error loading shared library libstdc++.so.6' >&2; exit 127\n");
    expect(await tryOut(target, broken)).toEqual([
      {
        text: "not started on this machine: Error loading shared library libstdc++.so.6",
        isFault: false,
      },
    ]);
  },
);

const readelf = isLinux ? Bun.which("readelf") : null;
test.skipIf(readelf === null)(
  `the alignment of an executable's segments is what readelf says${readelf === null ? " (skipped: no readelf here)" : ""}`,
  () => {
    const { stdout } = Bun.spawnSync([readelf ?? "", "--program-headers", "--wide", EXECUTABLE]);
    const said = [...stdout.toString().matchAll(/^ +LOAD .* (0x\w+)$/gm)].map(([, hex]) => Number(hex));
    expect(said.length).toBeGreaterThan(1);
    expect(loadAlignments(EXECUTABLE)).toEqual(said);
  },
);

test("the image gets one executable: what is copied from the build directory stays in an earlier stage", async () => {
  const dockerfile = await Bun.file(`${import.meta.dir}/../../docs/examples/container/Dockerfile`).text();
  const stages = dockerfile.split(/^FROM /m).slice(1);
  const copied = (stages.at(-1) ?? "").match(/^(?:COPY|ADD) .*$/gm);
  expect(copied).toEqual(["COPY --from=executable /luxhub /usr/local/bin/luxhub"]);
  expect(stages[0]).toStartWith("${BASE} AS executable\n");
});

const dpkg = Bun.which("dpkg-deb");
test.skipIf(dpkg === null)(
  `Debian's package has the program, its service and its manual page${dpkg === null ? " (skipped: no dpkg-deb here)" : ""}`,
  async () => {
    using dir = new TempDir();
    const dpkgDeb = (...words: readonly string[]): string =>
      Bun.spawnSync(["dpkg-deb", ...words]).stdout.toString();
    const make = async (folder: string): Promise<string> => {
      const release = {
        folder: dir.join(folder),
        version: "1.2.3-rc.1",
        description: "A hub.",
        maintainer: "someone",
      };
      mkdirSync(release.folder);
      const run = (words: readonly string[]): void => expect(Bun.spawnSync([...words]).exitCode).toBe(0);
      return makeDebian({ ...release, run }, "amd64", program, extras());
    };
    const program = dir.join("program"); // a small one: to pack the executable takes long
    writeFileSync(program, "#!/bin/sh\necho luxhub 1.2.3\n");
    const one = await make("one");
    const umask = process.umask(0o077);
    const two = await make("two").finally(() => process.umask(umask));
    expect(readFileSync(one).equals(readFileSync(two))).toBe(true);
    expect(dpkgDeb("--field", one, "Version").trim()).toBe("1.2.3~rc.1");
    expect(dpkgDeb("--contents", one)).toMatch(/^drwxr-xr-x root\/root .* \.\/\n/);
    expect(dpkgDeb("--info", one, "prerm")).toContain("disable --now luxhub.service");
    Bun.spawnSync(["dpkg-deb", "--extract", one, dir.join("root")]);
    expect(Bun.spawnSync([dir.join("root/usr/bin/luxhub")]).stdout.toString()).toBe("luxhub 1.2.3\n");
    expect(readFileSync(dir.join("root/usr/lib/systemd/system/luxhub.service"), "utf8")).toContain(
      "\nExecStart=/usr/bin/luxhub serve --data /var/lib/luxhub --log json\n",
    );
    expect(readFileSync(dir.join("root/usr/share/man/man1/luxhub.1"), "utf8")).toStartWith(".TH LUXHUB 1");
  },
);

test("the formula names each executable with its checksum", () => {
  const systems = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"];
  const sums = new Map(systems.map((system, i) => [`luxhub-1.2.3-${system}`, `${i}`.repeat(64)]));
  const formula = formulaOf({ version: "1.2.3", description: "A hub." }, sums, "DOWNLOADS");
  const named = [...formula.matchAll(/url "DOWNLOADS\/(\S+)"\n +sha256 "(\d+)"/g)].map(([, name, sum]) => [
    name,
    sum,
  ]);
  expect(named).toEqual([...sums]);
  expect(formula.match(/\b(?:do|def|class)\b/g)).toHaveLength(formula.match(/^ *end$/gm)?.length ?? 0);
});
