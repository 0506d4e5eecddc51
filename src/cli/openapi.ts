/** `luxhub openapi`: prints the OpenAPI document of a variant; no hub needs to run. */
import { openApi } from "../api/openapi.ts";
import { DECLARED } from "../api/routes.ts";
import { VARIANTS } from "../variant/by-name.ts";
import { UsageError, readArguments } from "./arguments.ts";
import { formOf } from "./commands.ts";
import { helpOf } from "./help.ts";
import { writeLineUnlessClosed } from "./standard-output.ts";

const FORM = formOf("openapi");

export function openApiCommand(argv: readonly string[]): number {
  const { flags, help } = readArguments(argv, FORM);
  if (help) return writeLineUnlessClosed(helpOf(FORM.name));
  const name = flags["variant"]?.at(-1) ?? "A";
  if (name !== "A" && name !== "B") throw new UsageError("--variant is A or B", FORM.name);
  return writeLineUnlessClosed(JSON.stringify(openApi(VARIANTS[name], DECLARED), null, 2));
}
