/** The declarations of the commands that are one call, against the declaration of what they call. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Schema } from "../../src/api/openapi.ts";
import { REMOTE_FLAGS, fieldOf, fieldsOf } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { PROJECT } from "../support/executable.ts";
import { cliRequests } from "../../tools/generate/cli-requests.ts";
import { operations, schemaNamed } from "../../tools/generate/client-types.ts";

test("requests.ts is what the declarations say: bun run client-types", async () => {
  expect(cliRequests()).toBe(await Bun.file(join(PROJECT, "src/cli/requests.ts")).text());
});

const RESOURCES = COMMANDS.flatMap(({ resource, ...command }) =>
  resource ? [{ ...command, resource }] : [],
);

test.each(RESOURCES)("$name: each flag is a field, and nothing required is missing", (command) => {
  const { words, flags, resource } = command;
  const { call, switches = {}, fixed = {} } = resource;
  const names = Object.keys(flags).filter((flag) => flag !== "limit" && !(flag in REMOTE_FLAGS));
  const fields = names.filter((flag) => !(flag in switches)).map((flag) => [flag, fieldOf(call, flag)?.name]);
  expect(fields.filter(([, field]) => field === undefined)).toEqual([]);
  const placeholders = words
    .replaceAll(/[[\]…]/g, "")
    .split(" ")
    .filter(Boolean);
  const set = [
    ...placeholders.map((word) => (fieldOf(call, word.toLowerCase()) ?? fieldsOf(call)[0])?.name),
    ...fields.map(([, field]) => field),
    ...Object.keys(fixed),
  ];
  expect(new Set(set).size).toBe(set.length);
  const required = fieldsOf(call).filter(({ isRequired }) => isRequired);
  expect(required.map(({ name }) => name).filter((name) => !set.includes(name))).toEqual([]);
});

const COLUMNS = RESOURCES.flatMap(({ resource: { call, columns } }) => (columns ? [{ call, columns }] : []));

test.each(COLUMNS)("the columns of $call are fields of its records", ({ call, columns }) => {
  const answer = operations().find(({ name }) => name === call)?.answer[0];
  const list = Object.values(answer?.properties ?? {}).find(({ items }) => items !== undefined);
  const whole = (schema: Schema = {}): Schema => {
    const part = schema.anyOf?.find(({ type }) => type !== "null") ?? schema;
    return part.$ref === undefined ? part : schemaNamed(part.$ref);
  };
  for (const column of columns.split(", ")) {
    const [, path = ""] = column.split(/ (?=\S+$)/);
    let schema = whole(list?.items);
    for (const name of path.split(".")) {
      expect(Object.keys(schema.properties ?? {})).toContain(name);
      schema = whole(schema.properties?.[name]);
    }
  }
});
