/** The changes that a task has left in a repository, as a diff. Must not: make anything of the text but text. */
import { type VNode, h } from "preact";
import type { FileRecord } from "../../client/luxhub.ts";
import { commandOf, quoted, sizeOf } from "./format.ts";
import { useLoad } from "./load.ts";
import { Copy, Fault, Section } from "./parts.tsx";
import { hub } from "./session.ts";

const PATCH_BYTES = 256 * 1_024;
export const PATCH_NAME = "changes.patch";

export function Patch({ taskId, file }: { taskId: string; file: FileRecord }): VNode {
  const { file_id, size } = file;
  const range = size > PATCH_BYTES ? `bytes=0-${PATCH_BYTES - 1}` : undefined;
  const { value, error } = useLoad(file_id, async (_, signal) =>
    (await hub.value.download({ file_id, range }, { signal })).text(),
  );
  return (
    <Section title="Changes">
      <Fault text={error} />
      {value !== null && (
        <pre class="text diff" tabIndex={0} aria-label="Changes in the repository">
          {value.trimEnd().split("\n").map(lineOf)}
        </pre>
      )}
      <p class="quiet">
        {range && `The first ${sizeOf(PATCH_BYTES)}. `}
        <Copy text={commandOf(`task apply ${quoted(taskId)}`)} label="Copy the command that applies it" />
      </p>
    </Section>
  );
}

/** A line of a patch by what git means with it: added, removed, the head of a file or of a place in it. */
function lineOf(line: string): VNode {
  const text = `${line}\n`;
  if (/^(?:diff |index |new |deleted |old |similarity |rename |Binary |GIT |--- |\+\+\+ )/.test(line))
    return <b>{text}</b>;
  if (line.startsWith("@@")) return <i>{text}</i>;
  if (line.startsWith("+")) return <ins>{text}</ins>;
  return line.startsWith("-") ? <del>{text}</del> : <span>{text}</span>;
}
