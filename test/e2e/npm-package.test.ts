/**
 * The npm package of the hub, as `bun run release` makes it: Node starts it, and it runs on the Bun that npm installed
 * next to it. The test puts its own Bun there, so that nothing is fetched.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeHubPackage, sharedFields } from "../../tools/release.ts";
import { version } from "../../package.json";
import { Hub, TempDir, run } from "./program.ts";

const node = Bun.which("node");
const missing = node === null ? "no node here" : Bun.which("npm") === null ? "no npm here" : null;

describe.skipIf(missing !== null)(
  `the npm package${missing === null ? "" : ` (skipped: ${missing})`}`,
  () => {
    const place = new TempDir();
    const luxhub = place.join("node_modules/luxhub/luxhub.js");
    const command = [node ?? "", luxhub];
    /** No Bun on the path. */
    const env = { PATH: "/nonexistent", HOME: "" };
    const architecture = process.arch === "arm64" ? "aarch64" : process.arch;
    const bun = place.join(`node_modules/@oven/bun-${process.platform}-${architecture}/bin/bun`);

    beforeAll(async () => {
      const archive = await makeHubPackage(place.path);
      mkdirSync(dirname(luxhub), { recursive: true });
      const unpacked = Bun.spawnSync(["tar", "-xzf", archive, "--strip-components=1", "-C", dirname(luxhub)]);
      expect(unpacked.exitCode).toBe(0);
      mkdirSync(dirname(bun), { recursive: true });
      writeFileSync(join(dirname(bun), "../package.json"), "{}");
      symlinkSync(process.execPath, bun);
    }, 300_000);

    afterAll(() => place[Symbol.dispose]());

    test("is small, names Bun alone, and has its licences", () => {
      expect(Bun.file(place.join(`luxhub-${version}.tgz`)).size).toBeLessThan(1.5 * 2 ** 20);
      const manifest = JSON.parse(readFileSync(join(dirname(luxhub), "package.json"), "utf8"));
      expect(manifest).toMatchObject({
        name: "luxhub",
        version,
        license: "MIT",
        keywords: expect.arrayContaining(["task-queue"]),
        bin: { luxhub: "luxhub.js" },
        engines: { node: ">=20" },
        os: ["linux", "darwin"],
      });
      expect(manifest.private).toBeUndefined();
      expect(manifest.description).not.toBe("");
      expect(readFileSync(join(dirname(luxhub), "README.md"), "utf8")).toStartWith("# luxhub");
      expect(Object.keys(manifest.optionalDependencies)).toHaveLength(6);
      expect([manifest.dependencies, manifest.scripts]).toEqual([undefined, undefined]);
      expect(readFileSync(join(dirname(luxhub), "LICENSES-OF-OTHERS"), "utf8")).toMatch(/^zod$/m);
    });

    test("has what the owner adds to package.json before publishing", () => {
      const owner = {
        author: "A <a@example.org>",
        repository: { type: "git", url: "git+https://example.org/luxhub.git" },
        homepage: "https://example.org/luxhub",
        bugs: "https://example.org/luxhub/issues",
        publishConfig: { access: "public" },
      };
      const given = {
        name: "@a/luxhub",
        description: "d",
        scripts: { build: "b" },
        dependencies: {},
        version,
      };
      expect(sharedFields({ ...given, ...owner })).toEqual({ version, ...owner });
      expect(sharedFields(given)).toEqual({ version });
    });

    test("serves, reads nothing from its current directory, and ends with the signal", async () => {
      const cwd = place.join("cwd");
      mkdirSync(cwd);
      writeFileSync(join(cwd, ".env"), "LUXHUB_VARIANT=B\n");
      writeFileSync(join(cwd, "bunfig.toml"), 'preload = ["./none.ts"]\n');
      await using hub = await Hub.start({ command, cwd, env });
      expect(hub.listeners.map(({ variant }) => variant)).toEqual(["A"]);
      await hub.register("worker-1");
      const manual = hub.api.replace("/api/v1", "/docs");
      expect(await (await fetch(`${manual}/tutorial`)).text()).toContain("luxhub serve");
      expect((await fetch(`${manual}/dashboard-task.png`)).headers.get("content-type")).toBe("image/png");
      expect((await hub.stop()).code).toBe(0);
      expect(existsSync(join(cwd, "luxhub-data"))).toBe(true);
    });

    const noProc = existsSync("/proc/self/status") ? "" : " (skipped: there is no /proc here)";
    test.skipIf(noProc !== "")(`ends in order when its launcher is killed${noProc}`, async () => {
      await using hub = await Hub.start({ command, cwd: place.path, env });
      hub.program.child.kill("SIGKILL");
      await hub.program.printed(/ ended\n/);
    });

    test("passes the exit code on, and says when there is no Bun for the platform", async () => {
      expect(await run(["version"], { command, env })).toMatchObject({
        code: 0,
        stdout: `luxhub ${version}\n`,
      });
      expect((await run(["serve", "--bogus"], { command, env })).code).toBe(2);
      using elsewhere = new TempDir();
      const alone = elsewhere.join("alone.mjs");
      writeFileSync(alone, readFileSync(luxhub));
      const { code, stderr } = await run(["version"], { command: [node ?? "", alone], env, cwd: "/" });
      expect([code, stderr]).toEqual([1, expect.stringContaining("not installed Bun")]);
    });
  },
);
