/**
 * The git repository of `luxhub worker --repo`: a worktree and a branch for each attempt of a task, and the patch that
 * it leaves. The branch of a task is found by two refs below refs/luxhub/TASK: `branch` (symbolic) and `base` (the
 * commit from which it began).
 *
 * Invariant: the checkout, the index and the configuration of the user are not written; hooks of the repository do not
 * run for what the worker itself does. The files of a worktree are foreign: git is told where its directory is, and does
 * not read the file .git in them. Must not: know the hub.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import type { Environment } from "../config.ts";
import { must } from "../lib/assert.ts";
import { parseExact } from "../lib/exact-json.ts";
import { readTextFile } from "../text-file.ts";

export type Changes = {
  readonly branch: string;
  /** The commit from which the branch began. */
  readonly base: string;
  readonly commits: number;
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
};

export type RepositoryOptions = {
  /** A checkout, or a bare repository. */
  readonly dir: string;
  /** A branch, a tag or a commit; null: what the checkout is at. */
  readonly base: string | null;
  /** A remote that is fetched before each worktree. */
  readonly fetch: string | null;
  /** Each branch is pushed to this remote after an attempt. */
  readonly push: string | null;
  readonly env: Environment;
};

/** Git refused: `message` is its last lines. */
export class GitError extends Error {
  override readonly name = "GitError";
}

/** No commit has this directory of a worktree: it ignores itself. */
export const OWN_DIR = ".luxhub";
/** Gemini CLI reads no ignored file. It drops the blank, which git takes for part of a name, and so may read these. */
const IGNORED = "*\n !**\n";
/** The beginning of directories with work that could not be committed. */
const UNSAVED = "unsaved-";
const INTERRUPTED = "Work of an attempt that was killed";
const REFS = "refs/luxhub";
const BRANCHES = "luxhub";
const SLUG_MAX_CHARS = 40;
const SAME_NAME_MAX = 1_000;
/** Other processes of git hold a lock for moments. */
const LOCK_TRIES = 30;
const LOCK_PAUSE_MS = 100;
const LOCKED = /\.lock': File exists|cannot lock ref|could not lock|Unable to create/;
const STDERR_KEPT_CHARS = 2_000;
/** A command of git that takes longer, such as a fetch from a server that does not answer, is ended. */
const GIT_MAX_MS = 10 * 60_000;
/** What stands before the host of a URL may be a token. */
const CREDENTIALS = /:\/\/[^/@\s]+@/g;
/** Of the worker's own commands: nothing of the repository runs, and nothing is cleaned up behind. */
const SETTINGS = [
  "core.quotePath=false",
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "gc.auto=0",
  "maintenance.auto=false",
];
const PLAIN_DIFF = [
  "--binary",
  "--full-index",
  "--no-color",
  "--no-ext-diff",
  "--no-textconv",
  "--no-renames",
  "--no-relative",
  // Whatever the user has configured, git apply must take it.
  "--unified=3",
  "--src-prefix=a/",
  "--dst-prefix=b/",
  "--submodule=short",
  "--ignore-submodules=none",
];
/** Each is a run of git. */
const ADDED_ALONE_MAX = 2_000;
/** The mode of a commit of another repository in a tree. */
const GITLINK = "160000";

export type Worktree = {
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  /** Git's directory of the worktree, below that of the repository. */
  readonly gitDir: string;
};

/** Left by an attempt that may have run on another machine: its branch, from `base` to `head`, and its patch. */
export type Earlier = {
  readonly branch: string;
  readonly base: string;
  readonly head: string;
  /** Fetches the patch; resolves with its path. */
  readonly patch: () => Promise<string>;
};

/** Of a worktree: anew, as an attempt here or elsewhere left it, or without a patch that does not apply. */
export type Start = "new" | "continued" | "patched" | "patch_refused";

/** What an attempt has left whose worker was killed, and its patch. */
export type Left = Branch & {
  readonly attempt: Attempt | null;
  readonly patch: string;
  /** 0: there is no patch. */
  readonly files: number;
  readonly head?: string;
  /** What git could not take into the branch; null: nothing. */
  readonly missing: string | null;
  /** Where the files are then. */
  readonly kept: string | null;
};

type Attempt = { readonly task_id: string; readonly epoch: number };
type TaskName = { readonly task_id: string; readonly title: string };
type Branch = { readonly branch: string; readonly base: string };
/** In git's directory of a worktree: for which branch and attempt it was made. */
const NOTE_FILE = "luxhub.json";
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const BRANCH_NAME = /^luxhub\/[\w-]+$/;

export class Repository {
  readonly #options: RepositoryOptions;
  /** The directory that all worktrees share. */
  readonly commonDir: string;
  readonly #env: Record<string, string | undefined>;
  /** Serialises additions and removals of worktrees. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(
    options: RepositoryOptions,
    commonDir: string,
    env: Record<string, string | undefined>,
  ) {
    this.#options = options;
    this.commonDir = commonDir;
    this.#env = env;
  }

  /** @throws {GitError} when there is no repository, no such base or remote, or no commit to begin from */
  static async open(options: RepositoryOptions): Promise<Repository> {
    // Nor the secrets of the worker: filters, which an agent may have configured, get it.
    const clean = Object.entries(options.env).filter(([name]) => !/^(?:GIT|LUXHUB)_/i.test(name));
    const env = {
      ...Object.fromEntries(clean),
      GIT_TERMINAL_PROMPT: "0",
      GIT_OPTIONAL_LOCKS: "0",
      LC_ALL: "C",
    };
    const printed = await run(
      ["-C", options.dir, "rev-parse", "--path-format=absolute", "--git-common-dir"],
      env,
    );
    const repository = new Repository(options, realpathSync(printed.text), env);
    if (!(await repository.#hasIdentity())) {
      const identity = { NAME: "luxhub worker", EMAIL: "worker@luxhub.invalid" };
      for (const [what, value] of Object.entries(identity))
        for (const role of ["AUTHOR", "COMMITTER"]) env[`GIT_${role}_${what}` as keyof typeof env] = value;
    }
    for (const remote of [options.fetch, options.push])
      if (remote !== null) await repository.#git(["remote", "get-url", "--", remote]);
    if (options.fetch === null) await repository.#baseCommit();
    if ((await repository.#commitOf(`refs/heads/${BRANCHES}`)) !== null)
      throw new GitError(`a branch is named ${BRANCHES}, so none can be named ${BRANCHES}/…: rename it`);
    return repository;
  }

  /** Whether the checkout has changes that no task sees. */
  async isDirty(): Promise<boolean> {
    const { text: isBare } = await this.#git(["rev-parse", "--is-bare-repository"]);
    if (isBare === "true") return false;
    const status = await run(["-C", this.#options.dir, "status", "--porcelain"], this.#env);
    return status.text !== "";
  }

  /**
   * Ends what a killed worker left below `parent`: what is not committed is committed to its branch, and, when `onLeft`
   * has resolved, the worktree is removed. Files of which git could not take all are kept. Nothing is done if there is
   * something, and `claim` says false: the worker runs.
   */
  async recover(
    parent: string,
    onLeft: (left: Left) => Promise<void>,
    claim: () => Promise<boolean> = () => Promise.resolve(true),
  ): Promise<void> {
    const stale = this.#worktrees().filter(({ path }) => path.startsWith(parent + sep));
    if (stale.length === 0 || !(await claim())) return;
    for (const { path, gitDir } of stale) {
      const made = noteIn(gitDir);
      if (made !== null) {
        const patch = `${path}.patch`;
        const changes = await this.finish({ path, gitDir, ...made.branch }, INTERRUPTED, patch).catch(
          (error: unknown) => {
            if (error instanceof GitError) return { ...made.branch, files: 0, missing: error.message };
            throw error;
          },
        );
        let kept: string | null = null;
        if (changes.missing !== null && isDirectory(path)) {
          kept = join(mkdtempSync(join(parent, UNSAVED)), basename(dirname(path)));
          renameSync(path, kept); // needs no room on the disk
        }
        await onLeft({ attempt: made.attempt, patch, kept, ...changes });
        rmSync(patch, { force: true });
      }
      await this.remove({ path });
    }
  }

  /**
   * On the branch of the task: as the last attempt left it, or new from the base, with what an attempt on another
   * machine has left.
   */
  checkOut(
    task: TaskName & Attempt,
    path: string,
    earlier: Earlier | null,
  ): Promise<Worktree & { readonly start: Start }> {
    return this.#inTurn(async () => {
      const { fetch } = this.#options;
      if (fetch !== null) await this.#git(["fetch", "--quiet", "--no-tags", "--", fetch]);
      this.#forget(path);
      const known = await this.#currentBranch(task, earlier);
      const branchRef = known ?? (await this.#newBranch(task, await this.#baseCommit()));
      mkdirSync(dirname(path), { recursive: true });
      try {
        await this.#git(["worktree", "add", "--quiet", path, branchRef.branch]);
        const real = realpathSync(path);
        const entry = this.#worktrees().find((worktree) => worktree.path === real);
        const { gitDir } = must(entry, "git has the worktree that it has just added");
        const { task_id, epoch } = task;
        writeFileSync(join(gitDir, NOTE_FILE), JSON.stringify({ ...branchRef, task_id, epoch }));
        makeOwnDir(path);
        const worktree = { path, gitDir, ...branchRef };
        if (known !== null) return { ...worktree, start: "continued" };
        if (earlier === null) return { ...worktree, start: "new" };
        const isApplied = await this.#apply(worktree, await earlier.patch());
        return { ...worktree, start: isApplied ? "patched" : "patch_refused" };
      } catch (error) {
        this.#forget(path);
        throw error;
      }
    });
  }

  /**
   * Commits what is not committed, and writes the patch of the whole branch. The branch is then what the worktree is at,
   * wherever the agent has left it. `missing`: what git could not take into the branch; null: nothing.
   */
  async finish(
    worktree: Worktree,
    message: string,
    patchPath: string,
  ): Promise<Changes & { readonly head: string; readonly missing: string | null }> {
    const { branch, base } = worktree;
    const isThere = existsSync(worktree.gitDir) && isDirectory(worktree.path);
    const fault = isThere ? await this.#commitAll(worktree, message) : null;
    const ref = `refs/heads/${branch}`;
    const commit = await this.#commitOf(ref);
    if (commit === null) await this.#git(["update-ref", ref, base]); // the agent has deleted it, and its worktree
    const head = commit ?? base;
    await run(this.#args(["diff", ...PLAIN_DIFF, base, head]), this.#env, Bun.file(patchPath));
    const { text } = await this.#git(["diff", "--numstat", "--no-ext-diff", "--no-renames", base, head]);
    const rows = text === "" ? [] : text.split("\n").map((row) => row.split("\t"));
    // Git counts no lines of a binary file.
    const sum = (column: 0 | 1): number =>
      rows.reduce((total, row) => total + (row[column] === "-" ? 0 : Number(row[column])), 0);
    const { text: commits } = await this.#git(["rev-list", "--count", `${base}..${head}`]);
    const counts = { files: rows.length, insertions: sum(0), deletions: sum(1) };
    const missing =
      fault ??
      (await this.#foreignRepositories(base, head)) ??
      (isThere ? await this.#changedSubmodules(worktree) : null);
    return { branch, base, head, commits: Number(commits), ...counts, missing };
  }

  /** Pushes the branch, if a remote is named. */
  async push({ branch }: Pick<Worktree, "branch">): Promise<void> {
    const { push } = this.#options;
    if (push === null) return;
    await this.#git(["push", "--quiet", "--force", "--no-verify", "--", push, `refs/heads/${branch}`]);
  }

  /** Removes a worktree with all in it; its branch stays. */
  async remove({ path }: Pick<Worktree, "path">): Promise<void> {
    await this.#inTurn(async () => {
      this.#forget(path);
    });
  }

  /**
   * Removes a worktree, and what git knows of it: also when it was killed while it made it, which locks it. Not with `git
   * worktree prune`, which forgets worktrees of the user too, such as those on a disk that is not mounted now.
   */
  #forget(path: string): void {
    rmSync(path, { recursive: true, force: true });
    const parent = existsSync(dirname(path)) ? realpathSync(dirname(path)) : dirname(path);
    for (const worktree of this.#worktrees())
      if (worktree.path === join(parent, basename(path)))
        rmSync(worktree.gitDir, { recursive: true, force: true });
  }

  // ---- Branches

  /** The branch from which an attempt goes on; null: none has all the work of the attempts before. */
  async #currentBranch(task: TaskName, earlier: Earlier | null): Promise<Branch | null> {
    const known = await this.#knownBranch(task.task_id);
    const branch =
      known !== null && (await this.#hasAll(known, earlier))
        ? known
        : await this.#pushedBranch(task.task_id, known, earlier);
    if (branch === null) return null;
    const ref = `refs/heads/${branch.branch}`;
    const head = must(await this.#commitOf(ref), "the branch of the task is there");
    // Who has it checked out, the user or a worker that was killed, keeps it.
    return (await this.#isCheckedOut(ref)) ? await this.#newBranch(task, head, branch.base) : branch;
  }

  async #isCheckedOut(ref: string): Promise<boolean> {
    const { text } = await this.#git(["worktree", "list", "--porcelain"]);
    return text.split("\n").includes(`branch ${ref}`);
  }

  /** Whether a branch has what the newest attempt has sent to the hub, which may have run on another machine. */
  async #hasAll({ branch }: Branch, earlier: Earlier | null): Promise<boolean> {
    if (earlier === null || !COMMIT.test(earlier.head)) return true;
    const args = ["merge-base", "--is-ancestor", earlier.head, `refs/heads/${branch}`];
    return (await this.#tryGit(args)) !== null;
  }

  async #knownBranch(taskId: string): Promise<Branch | null> {
    const base = await this.#commitOf(`${REFS}/${taskId}/base`);
    const ref = await this.#tryGit(["symbolic-ref", "--quiet", `${REFS}/${taskId}/branch`]);
    if (base === null || ref === null) return null;
    // Somebody may have deleted it.
    if ((await this.#commitOf(ref)) === null) await this.#git(["update-ref", ref, base]);
    return { branch: ref.slice("refs/heads/".length), base };
  }

  /** A branch that another machine has pushed, if it is what that machine has said. */
  async #pushedBranch(taskId: string, known: Branch | null, earlier: Earlier | null): Promise<Branch | null> {
    const { push } = this.#options;
    if (push === null || earlier === null) return null;
    const { branch, base, head } = earlier;
    if (!BRANCH_NAME.test(branch) || ![base, head].every((commit) => COMMIT.test(commit))) return null;
    const ref = `refs/heads/${branch}`;
    if ((await this.#tryGit(["fetch", "--quiet", "--no-tags", "--", push, ref])) === null) return null;
    for (const commit of [base, head])
      if ((await this.#tryGit(["cat-file", "-e", `${commit}^{commit}`])) === null) return null;
    // One that is here, and is not of this task or has work of its own, stays as it is.
    const here = await this.#commitOf(ref);
    const isBehind =
      here === null ||
      (known?.branch === branch &&
        !(await this.#isCheckedOut(ref)) &&
        (await this.#tryGit(["merge-base", "--is-ancestor", here, head])) !== null);
    if (!isBehind) return null;
    await this.#git(["update-ref", ref, head]);
    await this.#remember(taskId, { branch, base });
    return { branch, base };
  }

  async #remember(taskId: string, { branch, base }: Branch): Promise<void> {
    await this.#git(["update-ref", `${REFS}/${taskId}/base`, base]);
    await this.#git(["symbolic-ref", `${REFS}/${taskId}/branch`, `refs/heads/${branch}`]);
  }

  /** Makes a branch at `head`, which began from `base`. */
  async #newBranch({ task_id, title }: TaskName, head: string, base = head): Promise<Branch> {
    const first = branchName(task_id, title);
    for (let n = 1; n <= SAME_NAME_MAX; n++) {
      const branch = n === 1 ? first : `${first}-${n}`;
      // Such a branch may be of another task, or of the user.
      if ((await this.#commitOf(`refs/heads/${branch}`)) !== null) continue;
      if ((await this.#tryGit(["branch", "--no-track", "--", branch, head])) === null) {
        if ((await this.#commitOf(`refs/heads/${branch}`)) !== null) continue;
        await this.#git(["branch", "--no-track", "--", branch, head]); // says why it fails
      }
      await this.#remember(task_id, { branch, base });
      return { branch, base };
    }
    throw new GitError(`there are ${SAME_NAME_MAX} branches ${first}-…: delete some`);
  }

  async #baseCommit(): Promise<string> {
    const { base } = this.#options;
    const name = base ?? "HEAD";
    const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
    const commit =
      base === null ? await this.#tryRun(["-C", this.#options.dir, ...args]) : await this.#tryGit(args);
    if (commit !== null) return commit;
    throw new GitError(
      base === null ? "the repository has no commit to begin from" : `there is no commit ${base}`,
    );
  }

  async #apply(worktree: Worktree, patch: string): Promise<boolean> {
    const args = ["apply", "--3way", "--index", "--whitespace=nowarn", "--", patch];
    if ((await this.#tryIn(worktree, args)) !== null) return true;
    await this.#in(worktree, ["reset", "--quiet", "--hard", "HEAD"]);
    return false;
  }

  /**
   * Commits all that is not committed, and moves the branch to where the worktree is. Returns what git could not take;
   * null: it took all.
   */
  async #commitAll(worktree: Worktree, message: string): Promise<string | null> {
    const { branch, base, gitDir } = worktree;
    // No process works in it any more: what holds a lock was killed.
    for (const name of ["index", "HEAD"]) rmSync(join(gitDir, `${name}.lock`), { force: true });
    rmSync(join(this.commonDir, `refs/heads/${branch}.lock`), { force: true });
    // Detached: the branch on which the agent is may be the user's. Without one the commit would have no parent.
    const headBefore = await this.#tryIn(worktree, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
    await this.#in(worktree, ["update-ref", "--no-deref", "HEAD", headBefore ?? base]);
    let fault: string | null = null;
    try {
      await this.#in(worktree, ["add", "--all", "--ignore-errors", "--", "."]);
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      fault = error.message;
      await this.#addEach(worktree);
    }
    await this.#in(worktree, ["reset", "--quiet", base, "--", OWN_DIR]);
    if ((await this.#tryIn(worktree, ["diff", "--cached", "--quiet", "--ignore-submodules=none"])) === null)
      await this.#in(worktree, ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message]);
    const { text: head } = await this.#in(worktree, ["rev-parse", "HEAD"]);
    await this.#git(["update-ref", `refs/heads/${branch}`, head]);
    return fault;
  }

  /** Adds each file by itself: one that cannot be added, such as by a filter that fails, must not keep the others out. */
  async #addEach(worktree: Worktree): Promise<void> {
    const args = ["ls-files", "-z", "--modified", "--others", "--exclude-standard"];
    const { text } = await this.#in(worktree, args);
    const paths = text.split("\0").filter((path) => path !== "");
    for (const path of new Set(paths.slice(0, ADDED_ALONE_MAX)))
      await this.#tryIn(worktree, ["--literal-pathspecs", "add", "--all", "--", path]);
  }

  /** Repositories that an agent has made in its worktree: a commit has only their names. Null: there are none. */
  async #foreignRepositories(base: string, head: string): Promise<string | null> {
    const args = ["--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none", base, head];
    const { text } = await this.#git(["diff", ...args]);
    const rows = text.split("\n").map((row) => row.split(/[ \t]/));
    if (rows.some((row) => row.at(-1) === ".gitmodules")) return null; // a submodule
    const paths = rows.flatMap(([from = "", to, , , , ...path]) =>
      to === GITLINK && from !== `:${GITLINK}` ? [path.join(" ")] : [],
    );
    return paths.length === 0
      ? null
      : `a repository of its own, whose files no commit has: ${paths.join(", ")}`;
  }

  /** Submodules with changes inside, which no commit of this repository can have. Null: there are none. */
  async #changedSubmodules(worktree: Worktree): Promise<string | null> {
    const args = ["status", "--porcelain=v2", "--untracked-files=no", "--ignore-submodules=none"];
    const { text } = await this.#in(worktree, args);
    // 1 .M S.MU mH mI mW hH hI PATH
    const paths = text
      .split("\n")
      .flatMap((row) => /^1 \S+ S(?:\.M.|.{2}U)(?: \S+){5} (.*)$/.exec(row)?.[1] ?? []);
    return paths.length === 0 ? null : `changes inside of a submodule: ${paths.join(", ")}`;
  }

  #commitOf(ref: string): Promise<string | null> {
    return this.#tryGit(["rev-parse", "--verify", "--quiet", `${ref}^{commit}`]);
  }

  // ---- Git

  #worktrees(): readonly { readonly path: string; readonly gitDir: string }[] {
    const parent = join(this.commonDir, "worktrees");
    if (!existsSync(parent)) return [];
    return readdirSync(parent).flatMap((name) => {
      const gitDir = join(parent, name);
      try {
        const path = dirname(readTextFile(join(gitDir, "gitdir")).trim());
        return [{ path, gitDir }];
      } catch {
        return [];
      }
    });
  }

  async #hasIdentity(): Promise<boolean> {
    return (await this.#tryGit(["var", "GIT_COMMITTER_IDENT"])) !== null;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work, work);
    this.#queue = done.catch(() => {});
    return done;
  }

  #args(args: readonly string[]): readonly string[] {
    return [...SETTINGS.flatMap((setting) => ["-c", setting]), `--git-dir=${this.commonDir}`, ...args];
  }

  #git(args: readonly string[]): Promise<Output> {
    return run(this.#args(args), this.#env);
  }

  #tryGit(args: readonly string[]): Promise<string | null> {
    return this.#tryRun(this.#args(args));
  }

  async #tryRun(args: readonly string[]): Promise<string | null> {
    try {
      return (await run(args, this.#env)).text;
    } catch (error) {
      if (error instanceof GitError) return null;
      throw error;
    }
  }

  #argsIn({ path, gitDir }: { readonly path: string; readonly gitDir: string }, args: readonly string[]) {
    const settings = SETTINGS.flatMap((setting) => ["-c", setting]);
    return ["-C", path, ...settings, `--git-dir=${gitDir}`, `--work-tree=${path}`, ...args];
  }

  #in(
    worktree: { readonly path: string; readonly gitDir: string },
    args: readonly string[],
  ): Promise<Output> {
    return run(this.#argsIn(worktree, args), this.#env);
  }

  #tryIn(worktree: { readonly path: string; readonly gitDir: string }, args: readonly string[]) {
    return this.#tryRun(this.#argsIn(worktree, args));
  }
}

/** Makes the directory of the worker in a worktree anew. */
function makeOwnDir(path: string): void {
  const dir = join(path, OWN_DIR);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { mode: 0o700 });
  writeFileSync(join(dir, ".gitignore"), IGNORED);
}

/** Makes that directory anew if an agent has put a link or a file in its place, which leads the worker elsewhere. */
export function keepOwnDir(path: string): void {
  if (isDirectory(path) && !isDirectory(join(path, OWN_DIR))) makeOwnDir(path);
}

/** A link to a directory is none. */
function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Null: no worktree of a worker. The attempt is null in a worktree of an older version. */
function noteIn(gitDir: string): { readonly branch: Branch; readonly attempt: Attempt | null } | null {
  try {
    const { branch, base, task_id, epoch }: Record<string, unknown> = {
      ...Object(parseExact(readTextFile(join(gitDir, NOTE_FILE)))),
    };
    if (typeof branch !== "string" || typeof base !== "string") return null;
    const isWhole = typeof task_id === "string" && typeof epoch === "number";
    return { branch: { branch, base }, attempt: isWhole ? { task_id, epoch } : null };
  } catch {
    return null;
  }
}

/** luxhub/019ac1d2-say-hello: 8 characters of the id, and words of the title. */
export function branchName(taskId: string, title: string): string {
  const words = title
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, SLUG_MAX_CHARS)
    .replace(/-+$/, "");
  return `${BRANCHES}/${taskId.slice(0, 8)}${words === "" ? "" : `-${words}`}`;
}

type Output = { readonly text: string };

/** Again while another process holds a lock. @throws {GitError} with git's output */
async function run(
  args: readonly string[],
  env: Record<string, string | undefined>,
  stdout: "pipe" | Bun.BunFile = "pipe",
): Promise<Output> {
  for (let tries = 1; ; tries++) {
    // In a session of its own: Ctrl-C is for the worker, and ssh must not ask on its terminal.
    const child = Bun.spawn(["git", ...args], {
      env,
      stdin: "ignore",
      stdout,
      stderr: "pipe",
      detached: true,
      timeout: GIT_MAX_MS,
    });
    const [text, errors] = await Promise.all([
      child.stdout instanceof ReadableStream ? new Response(child.stdout).text() : "",
      new Response(child.stderr).text(),
    ]);
    if ((await child.exited) === 0) return { text: text.trimEnd() };
    if (!LOCKED.test(errors) || tries >= LOCK_TRIES)
      throw new GitError(
        errors.replaceAll(CREDENTIALS, "://***@").trim().slice(-STDERR_KEPT_CHARS) ||
          `git ${args.find((arg) => /^[a-z]/.test(arg)) ?? ""} ended with ${child.exitCode ?? child.signalCode}`,
      );
    await Bun.sleep(LOCK_PAUSE_MS);
  }
}
