/** `luxhub openapi`: prints the OpenAPI document of a variant; no hub needs to run. */
import { openApi } from "../api/openapi.ts";
import { DECLARED } from "../api/routes.ts";
import { VARIANTS } from "../variant/by-name.ts";
import { UsageError } from "./arguments.ts";
import type { LocalRuns } from "./run.ts";
import { writeLineUnlessClosed } from "./standard-output.ts";

export const LOCAL_RUNS: LocalRuns = {
  openapi: ({ flags }) => {
    const name = flags["variant"]?.at(-1) ?? "A";
    if (name !== "A" && name !== "B") throw new UsageError("--variant is A or B", "openapi");
    return writeLineUnlessClosed(JSON.stringify(openApi(VARIANTS[name], DECLARED), null, 2));
  },
};
