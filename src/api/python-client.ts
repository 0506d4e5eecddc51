/** The text of the client for Python, as it is served. A module of its own: an idle hub does not load it. */
import text from "../client/luxhub.py" with { type: "text" };

export const PYTHON_CLIENT_TEXT = text;
/** Strong. */
export const PYTHON_CLIENT_ETAG = `"${new Bun.CryptoHasher("sha256").update(text).digest("hex")}"`;
