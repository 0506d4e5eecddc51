/** `luxhub webhook …`: saves, lists, tests, resumes and deletes webhooks. */
import type { Environment } from "../config.ts";
import { EVENT_KINDS } from "../domain/event.ts";
import { UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type Run, collect, limitOf, recordOf, rowsOf, runGroup } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { plain, printJson, printJsonList, printTable, timeText } from "./table.ts";

export function webhookCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runGroup("webhook", runsOf(env), argv, env);
}

function runsOf(env: Environment): Readonly<Record<string, Run>> {
  return {
    "webhook put": (remote) => put(remote, env),
    "webhook list": list,
    "webhook test": async ({ hub, json, words: [name = ""] }) => {
      const answer = recordOf(await hub.webhooks.test({ name }));
      if (json) printJson(answer);
      else
        await writeLine(
          `${name}  ${answer.delivered ? "delivered" : "failed"}  ${outcomeOf(answer)}  ${answer.ms} ms`,
        );
      return answer.delivered ? EXIT.OK : EXIT.FAILED;
    },
    "webhook resume": async ({ hub, values, json, words: [name = ""] }) => {
      const answer = recordOf(await hub.webhooks.resume({ name, after: values.whole("after", 0) }));
      if (json) printJson(answer);
      else await writeLine(`${name}  resumed after the event ${answer.webhook.cursor}`);
      return EXIT.OK;
    },
    "webhook delete": async ({ hub, json, words: [name = ""] }) => {
      const answer = recordOf(await hub.webhooks.delete({ name }));
      if (json) printJson(answer);
      else await writeLine(`${name}  deleted`);
      return EXIT.OK;
    },
  };
}

async function put(
  { hub, values, json, words: [name = "", url = ""] }: Remote,
  env: Environment,
): Promise<number> {
  const variable = values.text("secret-env");
  const secret = variable === undefined ? undefined : env[variable];
  if (variable !== undefined && !secret)
    throw new UsageError(`the environment variable ${variable} of --secret-env is not set`, "webhook put");
  const answer = recordOf(
    await hub.webhooks.put({
      name,
      url,
      kinds: values.has("kind") ? values.choices("kind", EVENT_KINDS) : undefined,
      task_id: values.text("task"),
      node_id: values.text("node"),
      creator_node: values.text("creator"),
      group: values.text("group"),
      format: values.choice("format", ["luxhub", "ntfy", "a2a"]),
      secret,
    }),
  );
  if (json) printJson(answer);
  else await writeLine(answer.secret ?? `${name}  saved`);
  return EXIT.OK;
}

async function list(remote: Remote): Promise<number> {
  const load = async (page: { readonly page: number; readonly per_page: number }) => {
    const { webhooks, pages } = await remote.hub.webhooks.list(page);
    return { rows: webhooks, pages };
  };
  const webhooks = rowsOf(load, ({ name }) => name, limitOf(remote));
  if (remote.json) {
    await printJsonList(webhooks);
    return EXIT.OK;
  }
  const rows = (await collect(webhooks)).map((webhook) => {
    const { name, state, cursor, attempts, last_error, last_delivered_at, url } = webhook;
    const fault = attempts === 0 ? "" : `${attempts} failed: ${last_error ?? ""}`;
    const delivered = last_delivered_at === null ? "" : timeText(last_delivered_at);
    return [plain(name), state, cursor, delivered, plain(fault), plain(url)] as const;
  });
  printTable(["WEBHOOK", "STATE", "CURSOR", "DELIVERED", "FAULT", "URL"], rows);
  return EXIT.OK;
}

function outcomeOf({
  status,
  error,
}: {
  readonly status: number | null;
  readonly error: string | null;
}): string {
  return error ?? `HTTP ${status}`;
}
