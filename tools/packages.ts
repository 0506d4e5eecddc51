/**
 * The packages of a release for package managers: Debian's, and a formula for Homebrew. Both hold the executables that
 * the release has made.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { must } from "../src/lib/assert.ts";

/** `run` runs a command, and throws if it fails. */
export type Release = {
  readonly folder: string;
  readonly version: string;
  readonly description: string;
  readonly maintainer: string;
  readonly run: (words: readonly string[]) => void;
};

const DEBIAN_PROGRAM = "/usr/bin/luxhub";

export const DEBIAN_ARCHITECTURES = { amd64: "linux-x64", arm64: "linux-arm64" } as const;

export type Architecture = keyof typeof DEBIAN_ARCHITECTURES;

/** What is beside the executable in a package of Debian: `luxhub man` and so on, run on this machine. */
export type Extras = { readonly unit: string; readonly man: string; readonly completions: string };

/**
 * The service is not started by the installation: `systemctl enable --now luxhub`. The removal ends it. Needs dpkg-deb. Returns the path of
 * the package.
 */
export async function makeDebian(
  { folder, version, description, maintainer, run }: Release,
  architecture: Architecture,
  executable: string,
  { unit, man, completions }: Extras,
): Promise<string> {
  const place = mkdtempSync(join(tmpdir(), "luxhub-deb-"));
  const write = (path: string, text: string): Promise<number> => Bun.write(join(place, path), text);
  const writeScript = async (name: string, line: string): Promise<void> => {
    await write(`DEBIAN/${name}`, `#!/bin/sh\nset -e\n${line}\n`);
    chmodSync(join(place, "DEBIAN", name), 0o755);
  };
  try {
    mkdirSync(dirname(join(place, DEBIAN_PROGRAM)), { recursive: true });
    cpSync(executable, join(place, DEBIAN_PROGRAM));
    chmodSync(join(place, DEBIAN_PROGRAM), 0o755);
    await write(
      "usr/lib/systemd/system/luxhub.service",
      unit.replace(/^ExecStart=\S+/m, `ExecStart=${DEBIAN_PROGRAM}`),
    );
    await write("usr/lib/sysusers.d/luxhub.conf", 'u luxhub - "luxhub" /var/lib/luxhub\n');
    await write("usr/share/man/man1/luxhub.1", man);
    await write("usr/share/bash-completion/completions/luxhub", completions);
    cpSync(join(import.meta.dir, "../LICENSE"), join(place, "usr/share/doc/luxhub/copyright"));
    await writeScript(
      "postinst",
      "if command -v systemd-sysusers >/dev/null; then systemd-sysusers luxhub.conf; fi\nif [ -d /run/systemd/system ]; then systemctl daemon-reload; fi",
    );
    await writeScript(
      "prerm",
      'if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now luxhub.service; fi',
    );
    await write(
      "DEBIAN/control",
      [
        "Package: luxhub",
        `Version: ${version.replace("-", "~")}`, // sorts before the version itself
        `Architecture: ${architecture}`,
        `Maintainer: ${maintainer}`,
        "Section: net",
        "Priority: optional",
        "Depends: libc6 (>= 2.17)",
        `Description: ${description}`,
        "",
      ].join("\n"),
    );
    const path = join(folder, `luxhub_${version}_${architecture}.deb`);
    run(["chmod", "-R", "u=rwX,go=rX", place]); // whatever the umask is
    // The times in the package are no later than this: two packages of the same files are the same.
    run([
      "env",
      "SOURCE_DATE_EPOCH=1",
      "dpkg-deb",
      "--root-owner-group",
      "-Zxz",
      "-z1",
      "--build",
      place,
      path,
    ]);
    return path;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** @param sums the checksums of the executables by name @param url where the files of the release are */
export function formulaOf(
  { version, description }: Pick<Release, "version" | "description">,
  sums: ReadonlyMap<string, string>,
  url: string,
): string {
  const of = (system: string): string => {
    const name = `luxhub-${version}-${system}`;
    return `      url "${url}/${name}"\n      sha256 "${must(sums.get(name), "the release has the executable")}"\n`;
  };
  const part = (system: string, word: string): string =>
    `  on_${word} do\n    on_arm do\n${of(`${system}-arm64`)}    end\n    on_intel do\n${of(`${system}-x64`)}    end\n  end\n`;
  return `class Luxhub < Formula
  desc "${description.replace(/\.$/, "")}"
  version "${version}"
  license "MIT"
${part("darwin", "macos")}${part("linux", "linux")}
  def install
    bin.install Dir["luxhub-*"].first => "luxhub"
    man1.mkpath
    (man1/"luxhub.1").write Utils.safe_popen_read(bin/"luxhub", "man")
    generate_completions_from_executable(bin/"luxhub", "completions", shell_parameter_format: :arg)
  end

  service do
    run [opt_bin/"luxhub", "serve", "--data", var/"luxhub"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/luxhub version")
  end
end
`;
}
