/** Verifies a webhook of luxhub, or of any other sender of Standard Webhooks: with Bun, Deno, Node or in a browser. */

const TOLERANCE_S = 300; // an older message may be a copy of one that somebody recorded

/**
 * Returns the id of the message, the same whenever it is sent again.
 *
 * @param {string} secret whsec_…
 * @param {Headers} headers of the request
 * @param {string} body of the request, exactly as it came
 * @returns {Promise<string>}
 * @throws {Error} if it is not signed with the secret, or too old
 */
export async function verifyWebhook(secret, headers, body) {
  const id = headers.get("webhook-id") ?? "";
  const timestamp = headers.get("webhook-timestamp") ?? "";
  const isRecent = Math.abs(Date.now() / 1_000 - Number(timestamp)) <= TOLERANCE_S;
  if (!isRecent) throw new Error("the message is too old, or has no time");
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const raw = bytesOf(secret.replace("whsec_", ""));
  const key = await crypto.subtle.importKey("raw", raw, algorithm, false, ["verify"]);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  for (const shown of (headers.get("webhook-signature") ?? "").split(" ")) {
    const [version, signature = ""] = shown.split(",");
    if (version === "v1" && (await crypto.subtle.verify("HMAC", key, bytesOf(signature), signed))) return id;
  }
  throw new Error("the signature is wrong");
}

/** @param {string} base64 */
function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
