/** The index of the API: all endpoints, except those of files.ts (made with the configured limit) and stream.ts. */
import { BATCH_ENDPOINT } from "./batch.ts";
import type { Endpoint } from "./endpoint.ts";
import { KEY_ENDPOINTS } from "./keys.ts";
import { LUX_ENDPOINTS } from "./lux.ts";
import { MESSAGE_ENDPOINTS } from "./messages.ts";
import { NODE_ENDPOINTS } from "./nodes.ts";
import { SYSTEM_ENDPOINTS } from "./system.ts";
import { TASK_ENDPOINTS } from "./tasks.ts";

export const ENDPOINTS: readonly Endpoint[] = [
  ...NODE_ENDPOINTS,
  ...TASK_ENDPOINTS,
  ...MESSAGE_ENDPOINTS,
  ...LUX_ENDPOINTS,
  ...KEY_ENDPOINTS,
  ...SYSTEM_ENDPOINTS,
  BATCH_ENDPOINT,
];
