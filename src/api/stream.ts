import { rawEndpoint } from "./endpoint.ts";
import type { Feed } from "../service/feed.ts";
import type { Log } from "../lib/log.ts";
export class StreamRoom {
  constructor(_f: Feed, _l: Log) {}
  readonly endpoint = rawEndpoint({
    method: "GET",
    path: "/api/v1/agent/sse",
    auth: "secret",
    summary: "",
    rejections: [],
    handle: async () => new Response(""),
  });
  close(): void {}
}
