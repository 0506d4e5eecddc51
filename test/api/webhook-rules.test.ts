/** What a webhook may be: who puts it, its URL, its secret, and how many there are. webhooks.test.ts has its deliveries. */
import * as limit from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

/** Each is refused; most are addresses of this machine or its network. */
const URLS = `
  ftp://example.org/ /relative https://user:word@example.org/ https://user@example.org/ https://example.org/#part
  http://127.0.0.1:19104/ http://2130706433/ http://0x7f.1/ http://0177.0.0.1/ http://127.0.0.1./ http://127。0。0。1/
  http://[::1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:a9fe:a9fe]/ http://[64:ff9b::7f00:1]/ http://[2002:7f00:1::]/
  http://[fe80::1]/ http://169.254.169.254/latest/meta-data/ http://100.100.100.200/ http://0/ http://224.0.0.1/
  http://255.255.255.255/ http://10.0.0.1/ http://192.168.1.1/ http://[fd00::1]/ http://localhost:9000/
  https://example.org/${"x".repeat(limit.WEBHOOK_URL_MAX_CHARS)}`
  .trim()
  .split(/\s+/);
const PUT = 'admin webhook/put {name: ci, url: "https://example.org/"';

transcripts(`
-- a webhook is one of a bounded number
  ${Array.from({ length: limit.WEBHOOKS_MAX }, (_, n) => `${PUT}, name: w${n}}`).join("\n")}
  ${PUT}, name: more} -> 409 webhooks_limit
  ${PUT}, name: w0, kinds: []}
  admin webhook/delete {name: w1}
  ${PUT}, name: more}

-- a webhook is put by an administrator only, with a URL and a secret that are valid
  webhook/put {name: ci, url: "https://example.org/"} -> 403 admin_key_required
  GET webhook/list -> 403 admin_key_required
  ${PUT}, url: "<${URLS.join("|")}>"} -> 400 url
  ${PUT}, url: "https://ntfy.example/", format: ntfy} -> 400 url
  ${PUT}, secret: <whsec_|whsec_c2hvcnQ=|x*40|whsec_${"A".repeat(100)}>} -> 400 secret
  ${PUT}, kinds: [task.unknown]} -> 400 kinds.0
  ${PUT}, name: "a:b"} -> 400 name
  ${PUT}, url: " HTTPS://example.org/\\r\\na\\u001bb\\t"} -> webhook.url https://example.org/a%1Bb
  ${PUT}, secret: whsec_${Buffer.alloc(32, 7).toString("base64")}} -> secret absent
  key k ${PUT}} -> 400 Idempotency-Key
`);
