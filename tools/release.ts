/**
 * `bun run release`: makes in dist/release the files to publish: the executables of all platforms, which it also
 * starts (release-trial.ts), install.sh, the npm packages of hub and client, the files of the container, and SHA256SUMS
 * of all these.
 *
 * Bun's runtimes of the other platforms come from the npm registry, as packages with the checksums below.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VERSION } from "../src/version.ts";
import { DEBIAN_ARCHITECTURES, type Extras, type Release, formulaOf, makeDebian } from "./packages.ts";
import { tryOut } from "./release-trial.ts";

const PROJECT = join(import.meta.dir, "..");
const RELEASE = join(PROJECT, "dist/release");
const RUNTIMES = join(PROJECT, "dist/runtimes");

type Target = {
  /** As in `bun build --target`, without `bun-`. */
  readonly name: string;
  /** The npm package with its runtime, without `@oven/bun-`. */
  readonly runtime: string;
  readonly sha512: string;
};

/** The version of the runtimes, and of the Bun that makes the release. */
const BUN_VERSION = "1.4.5";
/**
 * There is no second executable for an x64 processor without AVX2: Bun's is made for SSE4.2, and its package
 * `bun-linux-x64-baseline` has the same bytes. The trial starts it on such a processor.
 */
const TARGETS: readonly Target[] = [
  {
    name: "linux-x64",
    runtime: "linux-x64",
    sha512: "IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==",
  },
  {
    name: "linux-x64-musl",
    runtime: "linux-x64-musl",
    sha512: "10QoW/YfTgnURaGEaHpJCiXjLI2e5iTtfVDaA5JKcyUzaa1cq6cVUY9/Uq5XkYzvtRjHLRe9Oj/lTDIQcxy8HQ==",
  },
  {
    name: "linux-arm64",
    runtime: "linux-aarch64",
    sha512: "4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
  },
  {
    name: "linux-arm64-musl",
    runtime: "linux-aarch64-musl",
    sha512: "XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==",
  },
  {
    name: "darwin-x64",
    runtime: "darwin-x64",
    sha512: "qkLPMGHZM9NI6CeHTWwVezzmlo6cC4Ta7yUAjYIWXS366qQcOlcp75t2uZyiuVRBMPS0h9qE0tCcvCHGaFqjJg==",
  },
  {
    name: "darwin-arm64",
    runtime: "darwin-aarch64",
    sha512: "4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==",
  },
  {
    name: "windows-x64",
    runtime: "windows-x64",
    sha512: "FNvply651vcE/GHgNWz6mZvhmkwBuu8Hw54oNzA+CQog+HW+542rXQmZqNHRkFxazD9L3xi+iTtvO3engAgJfw==",
  },
];

/** The fields of package.json that the published packages share. The owner adds those that are missing. */
const SHARED_FIELDS = [
  "version",
  "keywords",
  "license",
  "author",
  "repository",
  "homepage",
  "bugs",
  "publishConfig",
] as const;

type PackageJson = {
  readonly name: string;
  readonly description: string;
  readonly scripts: { readonly build: string };
  readonly dependencies: Readonly<Record<string, string>>;
} & Readonly<Partial<Record<(typeof SHARED_FIELDS)[number], unknown>>>;

export function sharedFields(manifest: PackageJson): Readonly<Record<string, unknown>> {
  const given = SHARED_FIELDS.filter((field) => manifest[field] !== undefined);
  return Object.fromEntries(given.map((field) => [field, manifest[field]]));
}

async function main(): Promise<void> {
  if (Bun.version !== BUN_VERSION)
    throw new Error(`the release is made with Bun ${BUN_VERSION}, not ${Bun.version}`);
  rmSync(RELEASE, { recursive: true, force: true });
  mkdirSync(RELEASE, { recursive: true });
  const failed: string[] = [];
  for (const target of TARGETS) {
    const executable = await makeExecutable(target);
    for (const found of await tryOut(target.name, join(RELEASE, executable))) {
      console.log(`${executable}: ${found.text}`);
      if (found.isFault) failed.push(executable);
    }
  }
  await writeInstallScript();
  await makeSystemPackages();
  await makeHubPackage(RELEASE);
  await makeClientPackage(RELEASE);
  await makeContainer();
  await writeChecksums();
  if (failed.length > 0) throw new Error(`did not pass their trial: ${failed.join(", ")}`);
}

// ---- Executables

async function makeExecutable(target: Target): Promise<string> {
  const runtime = await fetchRuntime(target);
  const place = join(tmpdir(), `luxhub-release-${process.pid}`);
  const unfinished = join(place, `luxhub${suffixOf(target.name)}`);
  const name = fileNameOf(target.name);
  // The same command as `bun run build`, but its source maps are not published.
  const build = (await packageJson()).scripts.build.split(" && ").at(-1) ?? "";
  const words = build.replace("dist/luxhub", unfinished).split(" ").slice(1);
  try {
    run([process.execPath, ...words, `--target=bun-${target.name}`, `--compile-executable-path=${runtime}`]);
    cpSync(unfinished, join(RELEASE, name));
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  return name;
}

function fileNameOf(target: string): string {
  return `luxhub-${VERSION}-${target}${suffixOf(target)}`;
}

function suffixOf(target: string): string {
  return target.startsWith("windows-") ? ".exe" : "";
}

/** The path of the Bun for another platform, downloaded if necessary. */
async function fetchRuntime({ name, runtime, sha512 }: Target): Promise<string> {
  const place = join(RUNTIMES, `${runtime}-${BUN_VERSION}`);
  const bun = join(place, `package/bin/bun${suffixOf(name)}`);
  if (existsSync(bun)) return bun;
  mkdirSync(place, { recursive: true });
  run(["npm", "pack", "--silent", `@oven/bun-${runtime}@${BUN_VERSION}`], place);
  const [archive = ""] = readdirSync(place).filter((name) => name.endsWith(".tgz"));
  const bytes = readFileSync(join(place, archive));
  const found = new Bun.CryptoHasher("sha512").update(bytes).digest("base64");
  if (found !== sha512) throw new Error(`the checksum of the runtime ${runtime} is wrong`);
  const unpacked = `${place}.new`; // so that an interruption leaves no incomplete one
  mkdirSync(unpacked, { recursive: true });
  run(["tar", "-xzf", join(place, archive), "-C", unpacked]);
  rmSync(place, { recursive: true });
  renameSync(unpacked, place);
  chmodSync(bun, 0o755);
  return bun;
}

// ---- npm packages

/**
 * The hub as an npm package for machines with Node alone: its code in JavaScript, a launcher that Node runs, and Bun as
 * a dependency, which npm installs for the platform. So the package itself has less than a megabyte.
 * Returns the path of the archive in `folder`.
 */
export async function makeHubPackage(folder: string): Promise<string> {
  const manifest = await packageJson();
  const { name, description, dependencies } = manifest;
  return pack(folder, name, async (place) => {
    const bundle = ["build", "--production", "--splitting", "--minify", "--format=esm"];
    run([process.execPath, ...bundle, "--target=bun", `--outdir=${place}/lib`, "src/main.ts"]);
    run([
      process.execPath,
      "build",
      "--target=node",
      `--outfile=${place}/luxhub.js`,
      "src/cli/node-launcher.ts",
    ]);
    const launcher = await Bun.file(join(place, "luxhub.js")).text();
    await Bun.write(join(place, "luxhub.js"), `#!/usr/bin/env node\n${launcher}`);
    await Bun.write(join(place, "LICENSES-OF-OTHERS"), await licencesOf(Object.keys(dependencies)));
    cpSync(join(PROJECT, "README.md"), join(place, "README.md"));
    return {
      name,
      description,
      ...sharedFields(manifest),
      type: "module",
      bin: { luxhub: "luxhub.js" },
      engines: { node: ">=20" },
      os: ["linux", "darwin"], // the launcher is not made for Windows, which has the executable
      optionalDependencies: Object.fromEntries(
        TARGETS.filter(({ name }) => !name.startsWith("windows-")).map(({ runtime }) => [
          `@oven/bun-${runtime}`,
          BUN_VERSION,
        ]),
      ),
    };
  });
}

const CLIENT = join(PROJECT, "src/client");
const TYPESCRIPT = "typescript@5.9.3";

export async function makeClientPackage(folder: string): Promise<void> {
  if (!existsSync(join(CLIENT, "index.ts")))
    return console.log("no package of the client: its source is not here");
  const manifest = await packageJson();
  const name = `${manifest.name}-client`;
  const archive = await pack(folder, name, async (place) => {
    const main = join(CLIENT, "index.ts");
    const joined = join(CLIENT, "joined.ts"); // for programs on a machine, which has files
    const build = [process.execPath, "build", "--format=esm"];
    run([...build, "--target=browser", `--outfile=${place}/luxhub.js`, main]);
    run([...build, "--target=node", `--outfile=${place}/joined.js`, joined]);
    const types = join(place, "types");
    const tsc = ["npm", "exec", "--yes", `--package=${TYPESCRIPT}`, "--", "tsc", main, joined];
    const declare = [
      "--declaration",
      "--emitDeclarationOnly",
      "--allowImportingTsExtensions",
      "--strict",
      "--noCheck",
    ];
    const into = ["--target", "esnext", "--module", "preserve", "--types", "bun", "--outDir", types];
    run([...tsc, ...declare, ...into]);
    for (const name of readdirSync(types)) {
      const path = join(types, name);
      // TypeScript finds a declaration by the name of the module that it declares.
      await Bun.write(
        path,
        (await Bun.file(path).text()).replaceAll(/(["']\.\/[\w-]+)\.ts(["'])/g, "$1.js$2"),
      );
    }
    cpSync(join(PROJECT, "docs/typescript.md"), join(place, "README.md"));
    return {
      name,
      description: "The typed client of luxhub, for Node, Bun and browsers",
      ...sharedFields(manifest),
      type: "module",
      sideEffects: false,
      types: "./types/index.d.ts",
      exports: {
        ".": { types: "./types/index.d.ts", default: "./luxhub.js" },
        "./joined": { types: "./types/joined.d.ts", default: "./joined.js" },
      },
      engines: { node: ">=20" },
    };
  });
  console.log(archive);
}

async function pack(
  folder: string,
  name: string,
  fill: (place: string) => Promise<Readonly<Record<string, unknown>>>,
): Promise<string> {
  const place = mkdtempSync(join(tmpdir(), "luxhub-package-"));
  try {
    const manifest = await fill(place);
    await Bun.write(join(place, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    cpSync(join(PROJECT, "LICENSE"), join(place, "LICENSE"));
    run(["npm", "pack", "--silent", "--pack-destination", folder], place);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  return join(folder, `${name.replace(/^@/, "").replace("/", "-")}-${VERSION}.tgz`); // as npm names it
}

async function licencesOf(packages: readonly string[]): Promise<string> {
  const names = new Set(packages);
  for (const name of names) {
    const { dependencies = {} } = await Bun.file(join(PROJECT, "node_modules", name, "package.json")).json();
    for (const one of Object.keys(dependencies)) names.add(one); // the loop visits these too
  }
  const texts = [...names].map(async (name) => {
    const place = join(PROJECT, "node_modules", name);
    const file = readdirSync(place).find((one) => /^licen[cs]e/i.test(one));
    if (file === undefined) throw new Error(`${name} has no licence`);
    return `${name}\n\n${await Bun.file(join(place, file)).text()}`;
  });
  return (await Promise.all(texts)).join("\n\n");
}

// ---- Packages of systems

/** The address at which the files of the release will be; without it whoever publishes writes it into the formula. */
const DOWNLOAD_URL = process.env["LUXHUB_DOWNLOAD_URL"] || "URL";

async function makeSystemPackages(): Promise<void> {
  const { description, author } = await packageJson();
  const maintainer = typeof author === "string" ? author : "luxhub";
  const release: Release = { folder: RELEASE, version: VERSION, description, maintainer, run };
  const sums = (await checksums()).split("\n").map((line) => line.split("  "));
  const formula = formulaOf(release, new Map(sums.map(([sum = "", name = ""]) => [name, sum])), DOWNLOAD_URL);
  await Bun.write(join(RELEASE, "luxhub.rb"), formula);
  if (Bun.which("dpkg-deb") === null) return console.log("no package of Debian: there is no dpkg-deb here");
  for (const architecture of ["amd64", "arm64"] as const) {
    const executable = join(RELEASE, fileNameOf(DEBIAN_ARCHITECTURES[architecture]));
    await makeDebian(release, architecture, executable, extras());
  }
}

/** Printed by the program itself. */
export function extras(): Extras {
  const printed = (...words: readonly string[]): string => {
    const { stdout, exitCode } = Bun.spawnSync([process.execPath, "src/main.ts", ...words], { cwd: PROJECT });
    if (exitCode !== 0) throw new Error(`luxhub ${words.join(" ")} ended with ${exitCode}`);
    return stdout.toString();
  };
  return {
    unit: printed("service", "print"),
    man: printed("man"),
    completions: printed("completions", "bash"),
  };
}

// ---- The rest

async function makeContainer(): Promise<void> {
  const place = join(PROJECT, "docs/examples/container");
  for (const name of readdirSync(place)) {
    const text = await Bun.file(join(place, name)).text();
    await Bun.write(join(RELEASE, name), text.replace(/^ARG VERSION$/m, `ARG VERSION=${VERSION}`));
  }
}

/** install.sh with the version and the checksums of the executables: `sum  name`, a line each. */
export async function installScript(sums: string): Promise<string> {
  const text = await Bun.file(join(import.meta.dir, "install.sh")).text();
  return text.replace("@VERSION@", VERSION).replace("@SUMS@", sums.trimEnd());
}

/** Writes install.sh, and installs with it the executable for this machine. */
async function writeInstallScript(): Promise<void> {
  const script = join(RELEASE, "install.sh");
  await Bun.write(script, await installScript(await checksums()));
  const place = mkdtempSync(join(tmpdir(), "luxhub-install-"));
  try {
    run(["sh", script, "--to", place]);
    console.log(`install.sh: installed ${readdirSync(place).join(", ")} from its own directory`);
  } finally {
    rmSync(place, { recursive: true });
  }
}

async function writeChecksums(): Promise<void> {
  await Bun.write(join(RELEASE, "SHA256SUMS"), await checksums());
}

async function checksums(): Promise<string> {
  const lines: string[] = [];
  for (const name of readdirSync(RELEASE).toSorted()) {
    const hash = new Bun.CryptoHasher("sha256");
    for await (const part of Bun.file(join(RELEASE, name)).stream()) hash.update(part);
    lines.push(`${hash.digest("hex")}  ${name}\n`);
  }
  return lines.join("");
}

async function packageJson(): Promise<PackageJson> {
  return Bun.file(join(PROJECT, "package.json")).json();
}

function run(words: readonly string[], cwd = PROJECT): void {
  const { code, text } = tryRun(words, cwd);
  if (code !== 0) throw new Error(`${words.join(" ")}\n${text}`);
}

function tryRun(words: readonly string[], cwd = PROJECT): { readonly code: number; readonly text: string } {
  try {
    const ended = Bun.spawnSync([...words], { cwd });
    return { code: ended.exitCode, text: `${ended.stderr.toString()}${ended.stdout.toString()}` };
  } catch (error) {
    return { code: 1, text: String(error) };
  }
}

if (import.meta.main) {
  await main();
}
