/** The program's own version; the variants' versions are those of the specification (variant/). */
import { version } from "../package.json";

export const VERSION = version;
export const SOFTWARE = `luxhub ${version}`;
