/** `luxhub lux NODE`: prints the balance and the ledger of a node. */
import type { Environment } from "../config.ts";
import { EXIT } from "./exit-codes.ts";
import { collect, limitOf, rowsOf, runRemote } from "./remote.ts";
import { plain, print, printJsonList, printTable, timeText } from "./table.ts";

export function luxCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runRemote(
    "lux",
    async (remote) => {
      const { hub, json, words } = remote;
      const [nodeId = ""] = words;
      const load = async (page: { readonly page: number; readonly per_page: number }) => {
        const { entries, pages } = await hub.lux.ledger({ node_id: nodeId, ...page });
        return { rows: entries, pages };
      };
      const entries = rowsOf(load, ({ id }) => id, limitOf(remote));
      if (json) {
        await printJsonList(entries);
        return EXIT.OK;
      }
      const { node } = await hub.nodes.get({ node_id: nodeId });
      print(`${plain(node.node_id)} has ${node.lux_balance} LUX`);
      const rows = (await collect(entries)).map(({ at, amount, kind, task_id }) => [
        timeText(at),
        amount,
        kind,
        task_id,
      ]);
      if (rows.length > 0) printTable(["TIME", "LUX", "KIND", "TASK"], rows);
      return EXIT.OK;
    },
    argv,
    env,
  );
}
