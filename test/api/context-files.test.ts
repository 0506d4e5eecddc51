/** What is large in the context of a task: its files, and results beyond the limit. context.test.ts has the rest. */
import { CONTEXT_FILES_MAX, CONTEXT_RESULTS_MAX_BYTES, FILES_OF_TASK_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const names = (letter: string, count: number) => Array.from({ length: count }, (_, i) => `${letter}${i}`);
const idsOf = (of: readonly string[]): string => of.map((name) => `$${name}`).join();
const many = names("t", 40);
const large = `x*${CONTEXT_RESULTS_MAX_BYTES / 8}`;
const withFiles = names("t", CONTEXT_FILES_MAX / FILES_OF_TASK_MAX + 1);
const filesOf = (task: string) => names(`${task}f`, FILES_OF_TASK_MAX);

transcripts(`
== inputs are the results and files of what the task depends on, in that order, also in a repeated dispatch
  nodes n1
  <first|second|gone> = task/create {title: <first|second|gone>}
  t = task/create {depends_on: [$second, $gone, $first]}
  given = upload in.txt {task_id: $first}
  task/claim $<first|second|gone> n1
  made = upload out.txt {task_id: $first, node: n1}
  task/complete $first n1 {result: {pages: 7}}
  task/complete $<second|gone> n1
  sweep
  admin task/delete $gone
  GET task/$t?context=1 -> context.inputs [
    {task_id: $second, title: second, status: completed, result: {lesson: *}, files: []},
    {task_id: $gone, title: null, status: null, result: null, files: []},
    {task_id: $first, title: first, status: completed, result: {pages: 7, lesson: *}, files: [
      {file_id: $given, name: in.txt, size: 17, attached: input},
      {file_id: $made, name: out.txt, size: 18, attached: output}]}]
  seen = GET task/$t/inputs -> {total: 3, next_cursor: null}
  key k1 task/next n1 -> {task: {task_id: $t}, context: {inputs: $seen.inputs}}
  replay

-- inputs beyond their limit are left out, and the pages of task/<id>/inputs have them
  nodes n1
  ${many.map((t) => `${t} = task/create; task/claim $${t} n1; task/complete $${t} n1 {result: {lesson: ${large}}}`).join("\n")}
  t = task/create {depends_on: [${idsOf(many)}]}
  task/claim $t n1 -> context.inputs.task_id [${idsOf(many)}]
  -> context.inputs.omitted [${"absent, ".repeat(7)}${"true, ".repeat(33)}]
  -> context.inputs.result.lesson [${`${large}, `.repeat(7)}${"null, ".repeat(33)}]
  # At most 1 MiB a page.
  page = GET task/$t/inputs?limit=100&cursor=0 -> inputs.result.lesson [${`${large}, `.repeat(31)}]
  GET task/$t/inputs?limit=100&cursor=$page.next_cursor -> {inputs: #9, next_cursor: null}

-- inputs with more files than a response has room for come in smaller pages, with all files
  ${withFiles.map((t) => `${filesOf(t)} = upload a.txt; ${t} = task/create {files: [${idsOf(filesOf(t))}]}`).join("\n")}
  t = task/create {depends_on: [${idsOf(withFiles)}]}
  page = GET task/$t/inputs?limit=100 -> inputs.files [${"#100, ".repeat(withFiles.length - 1)}]
  GET task/$t/inputs?limit=100&cursor=$page.next_cursor -> {inputs: [{files: #100}], next_cursor: null}
`);
