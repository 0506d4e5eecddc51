/** A separate module, so that an idle hub does not load the text. */
import text from "../client/luxhub.py" with { type: "text" };

export const PYTHON_CLIENT_TEXT = text;
export const PYTHON_CLIENT_ETAG = `"${new Bun.CryptoHasher("sha256").update(text).digest("hex")}"`;
