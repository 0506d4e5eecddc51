/** The repository of `luxhub worker --repo`, with the real git: what each attempt finds and leaves (docs/coding-agents.md). */
import { afterAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Earlier,
  GitError,
  type Left,
  OWN_DIR,
  Repository,
  type RepositoryOptions,
  branchName,
} from "../../src/cli/repository.ts";

const root = mkdtempSync(join(tmpdir(), "luxhub-repository-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let made = 0;
const newPath = (name: string): string => join(root, `${++made}-${name}`);

function git(dir: string, ...args: readonly string[]): string {
  const env = { PATH: process.env["PATH"], HOME: root, GIT_CONFIG_NOSYSTEM: "1" };
  const identity = [
    "-c",
    "user.name=Ada",
    "-c",
    "user.email=ada@example.org",
    "-c",
    "init.defaultBranch=main",
  ];
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...identity, "-C", dir, ...args], { env });
  if (exitCode !== 0) throw new Error(`git ${args.join(" ")}: ${stderr.toString()}`);
  return stdout.toString().trimEnd();
}

function newRepository(): string {
  const dir = newPath("repo");
  mkdirSync(dir);
  git(dir, "init", "--quiet");
  for (const [name, text] of [
    ["a.txt", "one\ntwo\nthree\n"],
    ["b.txt", "four\n"],
  ] as const)
    writeFileSync(join(dir, name), text);
  git(dir, "add", ".");
  git(dir, "commit", "--quiet", "-m", "First");
  return dir;
}

function open(dir: string, more: Partial<RepositoryOptions> = {}): Promise<Repository> {
  const env = { PATH: process.env["PATH"], HOME: root, GIT_DIR: "/nowhere" };
  return Repository.open({ dir, base: null, fetch: null, push: null, env, ...more });
}

/** What a killed worker has left below a directory, as the next one finds it. */
async function recovered(repository: Repository, parent: string): Promise<readonly Left[]> {
  const found: Left[] = [];
  await repository.recover(parent, async (left) => void found.push(left));
  return found;
}

let tasks = 0;
const newTask = (title = "Mend it") => ({
  task_id: `0190000${tasks++ % 10}-0000-7000-8000-${String(tasks).padStart(12, "0")}`,
  title,
  epoch: 1,
});
type Task = ReturnType<typeof newTask>;

/** One attempt: what `work` does in the worktree, and what is left. */
async function attempt(
  repository: Repository,
  task: Task,
  work: (path: string) => void,
  earlier: Earlier | null = null,
) {
  const worktree = await repository.checkOut(task, newPath("work"), earlier);
  work(worktree.path);
  const patch = newPath("changes.patch");
  const changes = await repository.finish(worktree, task.title, patch);
  await repository.push(worktree);
  await repository.remove(worktree);
  expect(existsSync(worktree.path)).toBe(false);
  return { ...changes, start: worktree.start, patch };
}

/** A hash of every file below a directory, git's own of the checkout included, but what worktrees must write. */
function contentOf(dir: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const path of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
    if (!statSync(join(dir, path)).isFile()) continue;
    if (
      /^\.git\/(?:objects|refs\/(?:luxhub|heads\/luxhub)|logs\/refs\/heads\/luxhub|worktrees|packed-refs)/.test(
        path,
      )
    )
      continue;
    files[path] = createHash("sha256")
      .update(readFileSync(join(dir, path)))
      .digest("hex");
  }
  return files;
}

test("an attempt ends in a branch and a patch, and the checkout is byte for byte as before", async () => {
  const dir = newRepository();
  writeFileSync(join(dir, "a.txt"), "not committed\n");
  writeFileSync(join(dir, "new.txt"), "not added\n");
  mkdirSync(join(dir, ".git/hooks"), { recursive: true });
  for (const hook of ["pre-commit", "post-checkout", "commit-msg", "reference-transaction"])
    writeFileSync(join(dir, ".git/hooks", hook), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const before = contentOf(dir);
  const repository = await open(dir);
  expect(await repository.isDirty()).toBe(true);
  const task = newTask("Say héllo, to everyone & more: 100%!");
  const left = await attempt(repository, task, (path) => {
    expect(readFileSync(join(path, "a.txt"), "utf8")).toStartWith("one");
    writeFileSync(join(path, "a.txt"), "one\n2\nthree\n");
    writeFileSync(join(path, "c.bin"), new Uint8Array([0, 1, 2, 255]));
    writeFileSync(join(path, OWN_DIR, "result.json"), "{}");
    rmSync(join(path, "b.txt"));
  });
  expect(left).toMatchObject({
    branch: `luxhub/${task.task_id.slice(0, 8)}-say-he-llo-to-everyone-more-100`,
    commits: 1,
    files: 3,
    insertions: 1,
    deletions: 2,
    start: "new",
  });
  expect(contentOf(dir)).toEqual(before);
  expect(git(dir, "worktree", "list").split("\n")).toHaveLength(1);
  expect(git(dir, "ls-tree", "--name-only", left.branch)).toBe("a.txt\nc.bin");
  const copy = newPath("copy");
  git(root, "clone", "--quiet", dir, copy);
  git(copy, "apply", "--index", left.patch);
  expect(git(copy, "write-tree")).toBe(git(dir, "rev-parse", `${left.branch}^{tree}`));
});

test("a second attempt goes on where the first ended, also when the title and the base have changed", async () => {
  const dir = newRepository();
  const repository = await open(dir);
  const task = newTask();
  const first = await attempt(repository, task, (path) => writeFileSync(join(path, "c.txt"), "c\n"));
  writeFileSync(join(dir, "d.txt"), "d\n");
  git(dir, "add", ".");
  git(dir, "commit", "--quiet", "-m", "Moved");
  const renamed = { ...task, title: "Another title" };
  const second = await attempt(repository, renamed, (path) => {
    expect(readdirSync(path)).toContain("c.txt");
    writeFileSync(join(path, "e.txt"), "e\n");
  });
  expect(second).toMatchObject({
    branch: first.branch,
    base: first.base,
    commits: 2,
    files: 2,
    start: "continued",
  });
});

test("tasks of one title and one beginning of the id have branches of their own", async () => {
  const repository = await open(newRepository());
  const [one, two] = ["1", "2"].map((end) => ({
    ...newTask("T"),
    task_id: `0190aaaa-0000-7000-8000-00000000000${end}`,
  }));
  const branches = await Promise.all(
    [one, two].map((task) => attempt(repository, task ?? newTask(), () => {}).then(({ branch }) => branch)),
  );
  expect(branches.toSorted()).toEqual(["luxhub/0190aaaa-t", "luxhub/0190aaaa-t-2"]);
});

describe("whatever an agent does to its worktree", () => {
  const commit = (path: string) => {
    writeFileSync(join(path, "c.txt"), "c\n");
    git(path, "add", ".");
    git(path, "commit", "--quiet", "-m", "Own");
  };
  test.each([
    ["it commits by itself", commit, { commits: 1, files: 1 }],
    ["it edits nothing", () => {}, { commits: 0, files: 0, insertions: 0, deletions: 0 }],
    [
      "it works on another branch",
      (path: string) => {
        git(path, "checkout", "--quiet", "-b", "elsewhere");
        commit(path);
        writeFileSync(join(path, "e.txt"), "e\n");
      },
      { commits: 2, files: 2 },
    ],
    [
      "it detaches its head",
      (path: string) => {
        git(path, "checkout", "--quiet", "--detach");
        commit(path);
      },
      { commits: 1, files: 1 },
    ],
    [
      "it deletes its branch",
      (path: string) => {
        const branch = git(path, "symbolic-ref", "HEAD");
        git(path, "update-ref", "-d", branch);
        writeFileSync(join(path, "c.txt"), "c\n");
      },
      { commits: 1, files: 1 },
    ],
    [
      "it removes its worktree",
      (path: string) => {
        commit(path);
        rmSync(path, { recursive: true });
      },
      { commits: 1, files: 1 },
    ],
    [
      "it replaces the file .git",
      (path: string) => {
        rmSync(join(path, ".git"));
        git(path, "init", "--quiet");
        git(path, "config", "core.fsmonitor", "touch ../touched; false");
        writeFileSync(join(path, "c.txt"), "c\n");
      },
      { files: 1 },
    ],
    [
      "it adds the files of the worker",
      (path: string) => {
        writeFileSync(join(path, OWN_DIR, "result.json"), "{}");
        git(path, "add", "--force", OWN_DIR);
        writeFileSync(join(path, "c.txt"), "c\n");
      },
      { commits: 1, files: 1 },
    ],
    [
      "it is killed while git has locks",
      (path: string) => {
        writeFileSync(join(path, "c.txt"), "c\n");
        const gitDir = git(path, "rev-parse", "--absolute-git-dir");
        const branch = git(path, "symbolic-ref", "HEAD");
        for (const lock of ["index.lock", "HEAD.lock", `../../${branch}.lock`])
          writeFileSync(join(gitDir, lock), "");
      },
      { commits: 1, files: 1 },
    ],
    [
      "it is on a branch that has no commit",
      (path: string) => {
        git(path, "checkout", "--quiet", "--orphan", "orphan");
        writeFileSync(join(path, "c.txt"), "c\n");
      },
      { commits: 1, files: 1 },
    ],
    [
      "it goes back behind its base",
      (path: string) => {
        git(path, "commit", "--quiet", "--allow-empty", "-m", "Own");
        git(path, "reset", "--quiet", "--hard", "HEAD~1");
        writeFileSync(join(path, "c.txt"), "c\n");
      },
      { commits: 1, files: 1 },
    ],
    [
      "it puts a link in place of its worktree",
      (path: string) => {
        rmSync(path, { recursive: true });
        symlinkSync(root, path);
      },
      { commits: 0, files: 0 },
    ],
    [
      "it makes a repository in its worktree that has no commit",
      (path: string) => {
        git(root, "init", "--quiet", join(path, "nested"));
        writeFileSync(join(path, "nested/x.txt"), "x\n");
        writeFileSync(join(path, "c.txt"), "c\n");
      },
      { commits: 1, files: 1, missing: expect.stringContaining("nested") },
    ],
    [
      "it makes a repository in its worktree",
      (path: string) => {
        git(root, "init", "--quiet", join(path, "nested"));
        git(join(path, "nested"), "commit", "--quiet", "--allow-empty", "-m", "Nested");
      },
      { commits: 1, missing: expect.stringContaining("nested") },
    ],
    [
      "it leaves a merge with conflicts",
      (path: string) => {
        git(path, "checkout", "--quiet", "-b", "other");
        writeFileSync(join(path, "b.txt"), "5\n");
        git(path, "commit", "--quiet", "-am", "Other");
        git(path, "checkout", "--quiet", "-");
        writeFileSync(join(path, "b.txt"), "6\n");
        git(path, "commit", "--quiet", "-am", "Own");
        expect(() => git(path, "merge", "--quiet", "other")).toThrow();
      },
      { files: 1 },
    ],
  ])("%s", async (_, work, wanted) => {
    const dir = newRepository();
    const repository = await open(dir);
    const left = await attempt(repository, newTask(), work);
    expect(left).toMatchObject(wanted);
    expect(git(dir, "ls-tree", "-r", "--name-only", left.branch)).not.toContain(OWN_DIR);
    expect(git(dir, "merge-base", left.base, left.branch)).toBe(left.base);
    expect(
      readdirSync(join(dir, ".git")).includes("worktrees") ? readdirSync(join(dir, ".git/worktrees")) : [],
    ).toEqual([]);
    expect(existsSync(join(root, "touched"))).toBe(false);
    expect(git(dir, "fsck", "--no-dangling")).not.toContain("error");
  });
});

test("what a killed worker left is committed, and its worktree is removed", async () => {
  const dir = newRepository();
  const parent = newPath("workdir");
  const task = newTask();
  const worktree = await (await open(dir)).checkOut(task, join(parent, "agent-1", "work"), null);
  writeFileSync(join(worktree.path, "c.txt"), "half done\n");
  const again = await open(dir);
  const { task_id, epoch } = task;
  expect(await recovered(again, parent)).toMatchObject([
    { attempt: { task_id, epoch }, branch: worktree.branch, files: 1, kept: null, missing: null },
  ]);
  expect(readdirSync(join(parent, "agent-1"))).toEqual([]);
  const left = await attempt(again, task, (path) =>
    expect(readFileSync(join(path, "c.txt"), "utf8")).toBe("half done\n"),
  );
  expect(left).toMatchObject({ start: "continued", commits: 1 });
  expect(await recovered(again, parent)).toEqual([]);
});

describe("a worker that was killed", () => {
  test("while it made a worktree, and with the user's own worktrees on a disk that is not there", async () => {
    const dir = newRepository();
    const [parent, elsewhere] = [newPath("workdir"), newPath("elsewhere")];
    git(dir, "worktree", "add", "--quiet", elsewhere, "-b", "mine");
    rmSync(elsewhere, { recursive: true });
    const task = newTask();
    const worktree = await (await open(dir)).checkOut(task, join(parent, "agent-1", "work"), null);
    writeFileSync(join(worktree.gitDir, "locked"), "initializing");
    rmSync(worktree.path, { recursive: true });
    const again = await open(dir);
    expect(await recovered(again, parent)).toMatchObject([{ files: 0, kept: null, missing: null }]);
    expect(await attempt(again, task, () => {})).toMatchObject({
      start: "continued",
      branch: worktree.branch,
    });
    expect(git(dir, "worktree", "list")).toContain(elsewhere);
  });

  test("and whose work git cannot take: its files are kept", async () => {
    const dir = newRepository();
    const parent = newPath("workdir");
    const { path, branch } = await (
      await open(dir)
    ).checkOut(newTask(), join(parent, "agent-1", "work"), null);
    git(root, "init", "--quiet", join(path, "nested"));
    for (const name of ["nested/x.txt", "c.txt"]) writeFileSync(join(path, name), "x\n");
    const [left] = await recovered(await open(dir), parent);
    expect(left).toMatchObject({ files: 1, missing: expect.stringContaining("nested") });
    expect(readFileSync(join(left?.kept ?? "", "nested/x.txt"), "utf8")).toBe("x\n");
    expect(git(dir, "show", `${branch}:c.txt`)).toBe("x");
    expect(git(dir, "worktree", "list").split("\n")).toHaveLength(1);
  });
});

test("a branch that is checked out, by the user or for a killed worker, stays: the attempt goes on at another", async () => {
  const dir = newRepository();
  const repository = await open(dir);
  const task = newTask();
  const first = await attempt(repository, task, (path) => writeFileSync(join(path, "c.txt"), "c\n"));
  git(dir, "checkout", "--quiet", first.branch);
  const second = await attempt(repository, task, (path) => writeFileSync(join(path, "d.txt"), "d\n"));
  expect(second).toMatchObject({
    start: "continued",
    branch: `${first.branch}-2`,
    base: first.base,
    files: 2,
  });
  expect(git(dir, "status", "--porcelain")).toBe("");
  expect(git(dir, "rev-parse", "HEAD")).toBe(first.head);
});

test("what an agent leaves on a branch of the user is committed to that of the task alone", async () => {
  const dir = newRepository();
  git(dir, "branch", "mine");
  const left = await attempt(await open(dir), newTask(), (path) => {
    git(path, "checkout", "--quiet", "mine");
    writeFileSync(join(path, "c.txt"), "c\n");
  });
  expect(left).toMatchObject({ commits: 1, files: 1 });
  expect(git(dir, "rev-parse", "mine")).toBe(left.base);
});

test("files of the repository in the directory of the worker are left alone", async () => {
  const dir = newRepository();
  mkdirSync(join(dir, OWN_DIR));
  writeFileSync(join(dir, OWN_DIR, "own.txt"), "of the user\n");
  git(dir, "add", "--force", ".");
  git(dir, "commit", "--quiet", "-m", "Own");
  const left = await attempt(await open(dir), newTask(), (path) => writeFileSync(join(path, "c.txt"), "c\n"));
  expect(left).toMatchObject({ files: 1 });
});

test("whatever the user has configured, the patch applies", async () => {
  const dir = newRepository();
  for (const [name, value] of [
    ["diff.noprefix", "true"],
    ["diff.mnemonicPrefix", "true"],
    ["diff.context", "0"],
    ["diff.external", "false"],
    ["diff.renames", "copies"],
    ["diff.submodule", "log"],
    ["color.ui", "always"],
    ["commit.gpgsign", "true"],
    ["core.hooksPath", "/nowhere"],
  ] as const)
    git(dir, "config", name, value);
  const left = await attempt(await open(dir), newTask(), (path) =>
    writeFileSync(join(path, "a.txt"), "one\n2\nthree\n"),
  );
  const copy = newPath("copy");
  git(root, "clone", "--quiet", dir, copy);
  git(copy, "apply", "--index", left.patch);
  expect(git(copy, "write-tree")).toBe(git(dir, "rev-parse", `${left.branch}^{tree}`));
});

test("the name of a file is in the patch as it is: a secret in it can be found", async () => {
  const left = await attempt(await open(newRepository()), newTask(), (path) =>
    writeFileSync(join(path, "pässwort-1"), "c\n"),
  );
  expect(readFileSync(left.patch, "utf8")).toContain("+++ b/pässwort-1");
});

test("a filter of the repository gets none of the worker's secrets, and an error none of a URL", async () => {
  const dir = newRepository();
  const seen = newPath("seen");
  git(dir, "config", "filter.spy.clean", `env > ${seen}; cat`);
  writeFileSync(join(dir, ".gitattributes"), "*.txt filter=spy\n");
  git(dir, "add", ".gitattributes");
  git(dir, "commit", "--quiet", "-m", "Filter");
  const env = { PATH: process.env["PATH"], HOME: root, LUXHUB_SECRET: "planted-secret" };
  await attempt(await open(dir, { env }), newTask(), (path) => writeFileSync(join(path, "c.txt"), "c\n"));
  expect(readFileSync(seen, "utf8")).not.toContain("planted-secret");
  git(dir, "remote", "add", "far", "nothing://ada:planted-token@127.0.0.1/x");
  const far = await open(dir, { fetch: "far" });
  const fault: unknown = await far.checkOut(newTask(), newPath("work"), null).catch((error) => error);
  expect(fault).toBeInstanceOf(GitError);
  expect(String(fault)).not.toContain("planted-token");
});

describe("on another machine", () => {
  const clones = () => {
    const dir = newRepository();
    const bare = newPath("bare");
    git(root, "clone", "--quiet", "--bare", dir, bare);
    return [newPath("one"), newPath("two")].map((clone) => {
      git(root, "clone", "--quiet", bare, clone);
      return clone;
    }) as [string, string];
  };

  test("an attempt begins from the patch of the last one", async () => {
    const [one, two] = clones();
    const task = newTask();
    const first = await attempt(await open(one), task, (path) =>
      writeFileSync(join(path, "a.txt"), "1\ntwo\nthree\n"),
    );
    const earlier = { ...first, patch: () => Promise.resolve(first.patch) };
    const second = await attempt(
      await open(two),
      task,
      (path) => expect(readFileSync(join(path, "a.txt"), "utf8")).toStartWith("1\n"),
      earlier,
    );
    expect(second).toMatchObject({ start: "patched", commits: 1, files: 1 });
    // Where the patch does not fit any more, the attempt begins anew, and is told.
    const [, three] = clones();
    writeFileSync(join(three, "a.txt"), "quite another file\n");
    git(three, "commit", "--quiet", "-am", "Other");
    const third = await attempt(
      await open(three),
      task,
      (path) => {
        expect(readFileSync(join(path, "a.txt"), "utf8")).toBe("quite another file\n");
      },
      earlier,
    );
    expect(third).toMatchObject({ start: "patch_refused", commits: 0 });
  });

  test.each([
    ["the patch", {}, "patched"],
    ["the branch that was pushed", { push: "origin" }, "continued"],
  ] as const)("what it has added is not lost when the task comes back: from %s", async (_, more, start) => {
    const [one, two] = clones();
    const task = newTask();
    const edit = (name: string) => (path: string) => writeFileSync(join(path, name), `${name}\n`);
    const asEarlier = (left: Awaited<ReturnType<typeof attempt>>): Earlier => ({
      ...left,
      patch: () => Promise.resolve(left.patch),
    });
    const first = await attempt(await open(one, more), task, edit("c.txt"));
    const second = await attempt(await open(two, more), task, edit("d.txt"), asEarlier(first));
    const third = await attempt(await open(one, more), task, edit("e.txt"), asEarlier(second));
    expect(third).toMatchObject({ start, files: 3 });
    expect(git(one, "rev-parse", `${third.branch}~1`)).toBe(start === "patched" ? first.base : second.head);
  });

  test("or from the branch, if it was pushed", async () => {
    const [one, two] = clones();
    const task = newTask();
    const first = await attempt(await open(one, { push: "origin" }), task, (path) =>
      writeFileSync(join(path, "c.txt"), "c\n"),
    );
    const earlier = { ...first, patch: () => Promise.reject(new Error("not needed")) };
    const second = await attempt(
      await open(two, { push: "origin" }),
      task,
      (path) => {
        writeFileSync(join(path, "d.txt"), "d\n");
      },
      earlier,
    );
    expect(second).toMatchObject({ start: "continued", branch: first.branch, base: first.base, commits: 2 });
    git(one, "fetch", "--quiet");
    expect(git(one, "rev-parse", `origin/${first.branch}`)).toBe(second.head);
  });
});

describe("kinds of repositories", () => {
  test("bare, detached, shallow, with --base and --fetch", async () => {
    const dir = newRepository();
    git(dir, "branch", "stable");
    writeFileSync(join(dir, "c.txt"), "c\n");
    git(dir, "add", ".");
    git(dir, "commit", "--quiet", "-m", "Second");
    const [bare, shallow] = [newPath("bare"), newPath("shallow")];
    git(root, "clone", "--quiet", "--bare", dir, bare);
    git(root, "clone", "--quiet", "--depth=1", `file://${dir}`, shallow);
    const edit = (path: string): void => writeFileSync(join(path, "d.txt"), "d\n");
    const second = git(dir, "rev-parse", "HEAD");
    for (const repository of [bare, shallow])
      expect(await attempt(await open(repository), newTask(), edit)).toMatchObject({
        base: second,
        files: 1,
      });
    expect(await attempt(await open(dir, { base: "stable" }), newTask(), edit)).toMatchObject({
      base: git(dir, "rev-parse", "stable"),
    });
    git(dir, "checkout", "--quiet", "--detach", "stable");
    const stable = git(dir, "rev-parse", "stable");
    expect(await attempt(await open(dir), newTask(), edit)).toMatchObject({ base: stable });
    git(dir, "checkout", "--quiet", "main");
    const fetching = await open(shallow, { base: "origin/main", fetch: "origin" });
    git(dir, "commit", "--quiet", "--allow-empty", "-m", "Third");
    expect(await attempt(fetching, newTask(), edit)).toMatchObject({ base: git(dir, "rev-parse", "main") });
  });

  test("a submodule stays as it is; what an agent changes inside of one is named", async () => {
    const dir = newRepository();
    git(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", newRepository(), "sub");
    git(dir, "commit", "--quiet", "-m", "Submodule");
    const repository = await open(dir);
    expect(await attempt(repository, newTask(), () => {})).toMatchObject({ files: 0, missing: null });
    const left = await attempt(repository, newTask(), (path) => {
      git(path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init");
      writeFileSync(join(path, "sub/a.txt"), "changed\n");
    });
    expect(left).toMatchObject({ files: 0, missing: expect.stringContaining("sub") });
  });

  test("a filter that fails: no worktree, or the file is named and the others are in the branch", async () => {
    const dir = newRepository();
    writeFileSync(join(dir, ".gitattributes"), "*.bin filter=broken\n");
    git(dir, "config", "filter.broken.clean", "false");
    git(dir, "config", "filter.broken.required", "true");
    git(dir, "add", ".gitattributes");
    git(dir, "commit", "--quiet", "-m", "Attributes");
    const left = await attempt(await open(dir), newTask(), (path) => {
      writeFileSync(join(path, "c.txt"), "c\n");
      writeFileSync(join(path, "b.bin"), "b\n");
      writeFileSync(join(path, "a.txt"), "changed\n");
    });
    expect(left).toMatchObject({ files: 2, missing: expect.stringContaining("b.bin") });
    git(dir, "config", "filter.broken.clean", "cat");
    git(dir, "config", "filter.broken.smudge", "false");
    writeFileSync(join(dir, "b.bin"), "b\n");
    git(dir, "add", "b.bin");
    git(dir, "commit", "--quiet", "-m", "Filtered");
    const repository = await open(dir);
    await expect(repository.checkOut(newTask(), newPath("work"), null)).rejects.toThrow("broken");
    expect(git(dir, "worktree", "list").split("\n")).toHaveLength(1);
  });

  test("one with a branch of the name before the slash is refused at the start", async () => {
    const dir = newRepository();
    git(dir, "branch", "luxhub");
    await expect(open(dir)).rejects.toThrow("rename");
  });

  test.each([
    ["no repository", () => root, {}],
    ["no such base", newRepository, { base: "nowhere" }],
    ["a base that looks like a flag", newRepository, { base: "--all" }],
    ["no such remote", newRepository, { fetch: "nowhere" }],
    ["no such remote to push to", newRepository, { push: "nowhere" }],
  ] as const)("%s is refused at the start", async (_, dirOf, more) => {
    await expect(open(dirOf(), more)).rejects.toThrow(GitError);
  });

  test("without a commit there is nothing to begin from", async () => {
    const dir = newPath("empty");
    mkdirSync(dir);
    git(dir, "init", "--quiet");
    await expect(open(dir)).rejects.toThrow("no commit");
  });
});

test("a branch of a title without letters is that of the id", () => {
  expect(branchName("0190aaaa-0000", "日本語 !?")).toBe("luxhub/0190aaaa");
  expect(branchName("0190aaaa-0000", "x".repeat(200))).toBe(`luxhub/0190aaaa-${"x".repeat(40)}`);
});
