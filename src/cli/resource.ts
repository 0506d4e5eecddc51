/** Runs the commands that are one call of the API (command.ts). */
import type { AnswerOf, LuxHub, Operation, RequestOf } from "../client/luxhub.ts";
import { METHODS } from "../client/types.ts";
import { must } from "../lib/assert.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { type Command, REMOTE_FLAGS, type Resource, type RowOf, fieldOf, fieldsOf } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type Run, forEach, limitOf, readStandardInput, recordOf } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import {
  type Cell,
  plain,
  print,
  printJson,
  printJsonLine,
  printJsonList,
  printRecord,
  printTable,
  timeText,
} from "./table.ts";

type Fields = Record<string, unknown>;

export function runOf(command: Command): Run {
  const resource = must(command.resource, `${command.name} is one call, or has a function`);
  if (resource.cells || resource.columns !== undefined || resource.text || resource.isExport)
    return (remote) => printList(remote, command);
  const { call, part, say, isFailure } = resource;
  const isChange = !(call in METHODS);
  return async (remote) => {
    const { hub, json, words } = remote;
    const isEach = command.words.endsWith("…");
    const act = async (given: readonly string[]): Promise<number> => {
      const answer = withUrl(
        recordOf(await ask(hub, call, await requestOf(remote, command, given))),
        hub.url,
      );
      const shown = part === undefined ? answer : Object(answer[String(part)]);
      if (json) (isEach ? printJsonLine : printJson)(shown);
      else if (!say) printRecord(shown);
      // Unlike what was read, what was changed must not be lost unnoticed.
      else (isChange ? writeLine : print)(plain(say(shown, given[0] ?? "")));
      return isFailure?.(shown) ? EXIT.FAILED : EXIT.OK;
    };
    return isEach ? forEach(words, async (word) => void (await act([word]))) : act(words);
  };
}

/** The hub answers the path of a URL: it does not know under which name its callers reach it. */
function withUrl(answer: Fields, hubUrl: string): Fields {
  const { url } = answer;
  const isPath = typeof url === "string" && url.startsWith("/");
  return isPath ? { ...answer, url: hubUrl + url } : answer;
}

function ask<O extends Operation>(hub: LuxHub, call: O, request: Fields): Promise<AnswerOf<O>> {
  return hub.call<Operation>(call, request as RequestOf<Operation>) as Promise<AnswerOf<O>>; // the hub checks its fields
}

async function requestOf({ values }: Remote, command: Command, words: readonly string[]): Promise<Fields> {
  const { call, fixed, switches = {}, input } = must(command.resource, "the command is one call");
  const request: Fields = { ...fixed };
  const placeholders = command.words.replaceAll(/[[\]…]/g, "").split(" ");
  const [first] = fieldsOf(call);
  for (const [i, word] of words.entries()) {
    const placeholder = must(placeholders[i], "each argument has a placeholder");
    const field = must(fieldOf(call, placeholder.toLowerCase()) ?? first, "the request has a field");
    if (field.name === input && word === "-") request[field.name] = await readStandardInput();
    else request[field.name] = field.words ? values.oneOf(placeholder, word, field.words) : word;
  }
  for (const flag of Object.keys(command.flags)) {
    if (flag === "limit" || Object.hasOwn(REMOTE_FLAGS, flag)) continue;
    if (switches[flag]) {
      if (values.has(flag)) Object.assign(request, switches[flag]);
      continue;
    }
    const field = must(fieldOf(call, flag), `--${flag} is a field of ${call}`);
    if (field.isRequired) values.needed(flag);
    if (values.has(flag)) request[field.name] = values.field(flag, field);
  }
  return request;
}

const PAGE = 50;
/** The fields that name a record of a list with page numbers. */
const NAMES = ["id", "name", "key", "scope", "value", "per"];

/** A row that has moved to the next numbered page meanwhile is not repeated. `onPage` gets each answer. */
export async function* rowsOf<O extends Operation>(
  hub: LuxHub,
  call: O,
  request: Fields & RequestOf<O>,
  limit: number,
  onPage?: (answer: AnswerOf<O>) => void,
): AsyncGenerator<RowOf<AnswerOf<O>>, void, undefined> {
  const names = fieldsOf(call).map(({ name }) => name);
  const size = must(
    ["per_page", "limit", "count"].find((name) => names.includes(name)),
    `${call} has pages`,
  );
  const isNumbered = names.includes("page") && !names.includes("cursor");
  let previous = new Set<string>();
  let count = 0;
  for (let place: Fields | null = isNumbered ? { page: 1 } : {}; place !== null;) {
    const most = isNumbered ? PAGE : Math.min(limit - count, PAGE);
    const answer: AnswerOf<O> = await ask(hub, call, { ...request, ...place, [size]: most });
    onPage?.(answer);
    const rows = rowsIn(answer);
    const ids = rows.map((row) => JSON.stringify(row, NAMES));
    for (const [i, row] of rows.entries()) {
      if (isNumbered && previous.has(must(ids[i], "each row has an id"))) continue;
      yield row as RowOf<AnswerOf<O>>; // the hub returns what it declares
      if (++count >= limit) return;
    }
    previous = new Set(ids);
    place = nextPlace(place, { ...answer }, { ...rows.at(-1) });
  }
}

/** Null: this was the last page. */
function nextPlace({ page }: Fields, { pages, next_cursor }: Fields, { id }: Fields): Fields | null {
  if (page !== undefined) return Number(page) < Number(pages) ? { page: Number(page) + 1 } : null;
  if (next_cursor !== undefined) return next_cursor === null ? null : { cursor: next_cursor };
  return id === undefined ? null : { before: id };
}

function rowsIn(answer: object): readonly object[] {
  const rows = Object.values(answer).find((part) => Array.isArray(part));
  if (rows === undefined) throw new Error("the response has no list: is this a hub?");
  return rows;
}

async function printList(remote: Remote, command: Command): Promise<number> {
  const { hub, json, words } = remote;
  const resource = must(command.resource, "the command is one call");
  const { call, text, between = "\n", none, isExport, order } = resource;
  const request = await requestOf(remote, command, words.length === 0 ? [] : [words.join(" ")]);
  if (isExport) {
    for await (const row of rowsOf(hub, call, request, Number.POSITIVE_INFINITY)) printJsonLine(row);
    return EXIT.OK;
  }
  const isPaged = command.flags["limit"] !== undefined;
  const limit = limitOf(remote);
  if (json && isPaged) {
    await printJsonList(rowsOf(hub, call, request, limit));
    return EXIT.OK;
  }
  let total = 0;
  const count = (answer: object): void => void (total = Math.max(total, Number(Object(answer).total)));
  const rows: readonly object[] = isPaged
    ? await Array.fromAsync(rowsOf(hub, call, request, limit, count))
    : rowsIn(await ask(hub, call, request));
  if (json) printJson(rows);
  else if (rows.length === 0 && none !== undefined) print(none);
  else if (!text) printTable(...tableOf(resource, rows));
  else if (rows.length > 0) print(rows.map((row) => text(row)).join(between));
  if (order !== undefined && total > limit) console.error(`The ${order} ${limit}; --limit shows more.`);
  return EXIT.OK;
}

function tableOf(
  { head = [], cells, columns = "" }: Resource,
  rows: readonly object[],
): Parameters<typeof printTable> {
  if (cells) return [head, rows.map((row) => cells(row))];
  const fields = columns.split(", ").map((column) => column.split(/ (?=\S+$)/));
  return [
    fields.map(([title = ""]) => title),
    rows.map((row) => fields.map(([, path = ""]) => cellAt(row, path))),
  ];
}

/** `path`: "task_id", or "review.until". */
function cellAt(row: object, path: string): Cell {
  const value = path.split(".").reduce<unknown>((part, name) => Object(part)[name], row);
  if (value === null || value === undefined) return null;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (path === "size") return sizeText(Number(value));
  return /(?:_at|until)$/.test(path) ? timeText(String(value)) : String(value);
}
