/** `luxhub task diff` and `task apply`: the changes of a task in a repository. */
import { isUtf8 } from "node:buffer";
import { isatty } from "node:tty";
import { PlainOutput } from "../lib/plain-output.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { EXIT } from "./exit-codes.ts";
import { type ClientRuns, type Remote, printError } from "./remote.ts";
import { writeBytes } from "./standard-output.ts";
import { printText } from "./table.ts";
import { fileOfAttempt } from "./task-files.ts";
import { PATCH_FILE } from "./task-repository.ts";

const STANDARD_OUTPUT = 1;

export const PATCH_RUNS: ClientRuns = { "task diff": diff, "task apply": apply };

async function diff({ hub, words: [taskId = ""] }: Remote): Promise<number> {
  const patch = await patchOf(hub, taskId);
  if (patch === null) return noPatch(taskId);
  // A pipe gets every byte, for git apply; a terminal no control characters of an agent.
  if (!isatty(STANDARD_OUTPUT)) return writeBytes(patch);
  if (!isUtf8(patch)) {
    printError(
      "the patch has bytes that are not UTF-8: write it to a file (luxhub task diff ID > changes.patch)",
    );
    return EXIT.FAILED;
  }
  const text = new PlainOutput();
  printText(text.add(decodeUtf8(patch)) + text.end());
  return EXIT.OK;
}

async function apply({ hub, values, words: [taskId = ""] }: Remote): Promise<number> {
  const status = git(["status", "--porcelain", "--untracked-files=no"]);
  if (status.exitCode !== 0) {
    printError(`task apply needs a checkout of the repository: ${status.errors}`);
    return EXIT.FAILED;
  }
  if (status.output !== "" && !values.has("force")) {
    printError("the checkout has changes: commit them, put them aside (git stash), or give --force");
    return EXIT.CONFLICT;
  }
  const patch = await patchOf(hub, taskId);
  if (patch === null) return noPatch(taskId);
  // Git leaves out, without a word, the files outside of the directory in which it applies a patch.
  const top = git(["rev-parse", "--show-toplevel"]).output;
  const applied = git(["-C", top, "apply", "--3way", "--whitespace=nowarn", "-"], patch);
  if (applied.exitCode === 0) return EXIT.OK;
  printError(`the patch does not apply as a whole: git status shows what conflicts\n${applied.errors}`);
  return EXIT.FAILED;
}

async function patchOf(hub: Remote["hub"], taskId: string): Promise<Uint8Array<ArrayBuffer> | null> {
  const { task } = await hub.tasks.get({ task_id: taskId });
  const file = await fileOfAttempt(task, PATCH_FILE, {}, hub);
  if (file === null) return null;
  return new Uint8Array(await (await hub.files.download({ file_id: file.file_id })).arrayBuffer());
}

function noPatch(taskId: string): number {
  printError(`task ${taskId} has no ${PATCH_FILE}: it has changed nothing, or ran without --repo`);
  return EXIT.NOT_FOUND;
}

function git(args: readonly string[], input?: Uint8Array) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...args], { stdin: input ?? "ignore" });
  return { exitCode, output: stdout.toString().trim(), errors: stderr.toString().trim() };
}
