/** How the listener answers when sending fails after a route has answered. */
import { expect, test } from "bun:test";
import { downloadResponse } from "../../src/http/download.ts";
import { CrossOrigin } from "../../src/http/cross-origin.ts";
import { openListener } from "../../src/http/listener.ts";
import type { Route } from "../../src/http/exchange.ts";
import { RequestMetrics } from "../../src/http/request-metrics.ts";
import { blockListOf } from "../../src/lib/ip.ts";
import { openLog } from "../../src/lib/log.ts";

test("a file deleted before it is sent is 404, not 500", async () => {
  const logged: string[] = [];
  const missing = Bun.file(`${import.meta.dir}/no-such-file`);
  const route = (path: string, handle: Route["handle"]): Route => ({ method: "GET", path, handle });
  const file = { name: "f", sizeBytes: 3, sha256: "0", contentType: "", modifiedAt: 0 };
  const routes = [
    route("/gone", async () => new Response(missing)),
    route("/download", ({ request }) =>
      downloadResponse(
        request,
        file,
        async () => missing.slice(0, 3),
        async (content) => content,
      ),
    ),
  ];
  const listener = await openListener({
    address: { host: "127.0.0.1", port: 0, tls: null },
    routes,
    problemOf: () => null,
    newRequestId: () => "made",
    log: openLog(
      { format: "json", level: "debug" },
      () => 0,
      (text) => logged.push(text),
    ),
    accessLog: { wants: () => false, write: () => undefined },
    metrics: new RequestMetrics(),
    crossOrigin: new CrossOrigin({ origins: [], hosts: [] }),
    lagSeconds: () => null,
    trustedProxies: blockListOf([]),
  });
  try {
    for (const [path, range] of [
      ["gone", null],
      ["download", null],
      ["download", "bytes=1-2"],
      ["download", "bytes=9-2"], // is no range: the whole file
    ] as const) {
      const headers: Record<string, string> = range === null ? {} : { Range: range };
      const response = await fetch(`http://127.0.0.1:${listener.port}/${path}`, { headers });
      expect([path, range, response.status]).toEqual([path, range, 404]);
      expect(await response.json()).toMatchObject({ success: false, error: "file_not_found" });
    }
    expect(logged).toEqual([]);
  } finally {
    await listener.stop(true);
  }
});
