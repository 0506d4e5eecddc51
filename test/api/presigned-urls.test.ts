/** Presigned URLs of files (file/download-url, file/upload-url): a download or an upload with a ticket and no secret. */
import { expect, test } from "bun:test";
import { PRIMARY_KEY_ID } from "../../src/domain/key.ts";
import { slowHash } from "../../src/lib/slow-hash.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { Tickets } from "../../src/service/tickets.ts";
import { SECRET, startHub } from "../support/hub.ts";
import { play, transcripts } from "../support/transcript.ts";
import { NO_ID, until } from "./scene.ts";

const made = "f, other = upload a.txt\nu = file/download-url {file_id: $f}";

test("a ticket cannot be forged with the hash of the hub's secret, which the database may hold", async () => {
  await using hub = await startHub({ isPrivate: true });
  const seen = await play(hub, made);
  const ticketBy = async (word: string): Promise<string> => {
    const keys = { derive: (...by: [string, number, number]) => slowHash(word, ...by) };
    const tickets = new Tickets({ ...keys, named: () => null, refresh: async () => {} }, hub.clock);
    const fileId = String(Object(seen.get("f")).file_id);
    return (await tickets.issue({ kind: "download", fileId }, { keyId: PRIMARY_KEY_ID })).text;
  };
  const [right, wrong] = [await ticketBy(SECRET), await ticketBy(hashSecret(SECRET))];
  await play(
    hub,
    `anon GET file/download/$f?ticket=${right}
    anon GET file/download/$f?ticket=${wrong} -> 401 unauthorized`,
    Object.fromEntries(seen),
  );
});

test("a ticket opens its file only, and nothing else", async () => {
  await using hub = await startHub({ isPrivate: true });
  const seen = await play(hub, made);
  const [, ticket = ""] = String(Object(seen.get("u")).url).split("ticket=");
  const wrong = [`${ticket}x`, `x${ticket}`, ticket.replace(/\..*/, ".AAAA"), "", ".", "x".repeat(2_000)];
  await play(
    hub,
    `anon GET <file/download/$other|file/list>?ticket=${ticket} -> 401 unauthorized
    anon upload $upward a.txt -> 401 unauthorized
    anon GET file/download/$f?ticket=<${wrong.join("|")}> -> 401 unauthorized
    file/delete {file_id: $f}
    anon GET $u.url -> 404 file_not_found`,
    { ...Object.fromEntries(seen), upward: `/api/v1/file/upload?ticket=${ticket}` },
  );
});

test("a wrong ticket counts as a wrong secret, a right one is always answered, and none is logged", async () => {
  await using hub = await startHub({ isPrivate: true });
  const seen = await play(hub, `${made}\nup = file/upload-url\nanon upload $up.url x.txt`);
  const statuses: number[] = [];
  for (let i = 0; i < 21; i++) {
    const path = `/file/download/${Object(seen.get("f")).file_id}?ticket=wrong${i}`;
    statuses.push((await hub.get(path, { headers: { "X-Matrix-Secret": null } })).status);
  }
  expect(statuses).toContain(429);
  await play(hub, "anon GET $u.url", Object.fromEntries(seen));
  await until("the requests are logged", async () => hub.logged.join("").includes("/file/download/"));
  expect(hub.logged.join("")).toContain("ticket=*");
  for (const name of ["u", "up"])
    expect(hub.logged.join("")).not.toContain(
      String(Object(seen.get(name)).url).split("ticket=")[1] ?? "none",
    );
});

transcripts(`
== a download needs no secret, as often as it is wanted, and ends after 10 minutes, and with the key that made it {isPrivate: true}
  f = upload a.txt
  <u|b> = <|B >file/download-url {file_id: $f} -> {method: GET, expires_at: +600s};
  anon B GET $<u|b>.url -> text "content of a.txt"; anon B GET $<u|b>.url -> text "content of a.txt"
  short = admin key/add {name: short}
  own = as $short file/download-url {file_id: $f}
  anon GET $own.url
  admin key/revoke {name: short}
  until anon GET $own.url -> 401 unauthorized
  anon GET $u.url
  tick 601s
  anon GET $u.url -> 401 unauthorized detail ~expired
  file/download-url {file_id: ${NO_ID}} -> 404 file_not_found

== an upload stores one file: a repeat is the same one, and another file is refused
  <u|b> = <|B >file/upload-url -> method POST
  at once -> {statuses: {"200": 4}, different: 2, replayed: 2}
  + one = anon upload $u.url one.txt {any: 1}
  + anon upload $u.url one.txt {any: 1}
  + anon B upload $b.url one.txt {any: 1}
  + anon B upload $b.url one.txt {any: 1}
  anon B upload $<u|b>.url two.txt -> 422 idempotency_key_reused detail "~Get a new one for each file"
  GET file/list -> files [{node_id: null}, {node_id: null, name: one.txt, metadata: {any: 1}}]
  GET file/list -> total 2

== an upload is of the node and the task that it was made for, whatever its metadata says
  nodes n1 n2
  t, other = task/create
  task/claim $t n1
  u = file/upload-url $t n1
  anon upload $u.url x.txt {node: n2, task_id: $other} -> {node_id: n1, task_id: $t, attached: output, metadata: {node: n2, task_id: $other}}
  file/upload-url {task_id: ${NO_ID}} -> 404 task_not_found
  file/upload-url nobody -> 404 node_not_found

== an upload with the URL of a bound key acts for its node, and counts against its quota {quotaBytes: 20000}
  nodes n1
  own = admin key/add n1 {name: own}
  u = as $own file/upload-url
  anon upload $u.url x.txt -> node_id n1
  u = as $own file/upload-url
  # A refusal is not kept.
  anon upload $u.url x.txt {content: y*20000} -> <429 quota_exceeded|429 quota_exceeded>
  as $own file/upload-url n2 -> 403 key_bound_to_other_node
  # Neither made by n1 nor assigned to it.
  t = task/create
  u = as $own file/upload-url $t
  anon upload $u.url z.txt -> 403 key_bound_to_other_node

-- an upload takes no Idempotency-Key for the URL, which is a secret
  key k file/upload-url -> 400 Idempotency-Key
  looks = admin key/add {name: looks, role: viewer}
  as $looks file/upload-url -> 403 viewer_not_allowed

== a ticket is good at every hub that has the database and the secret, and at no other {isPrivate: true}
  f = upload a.txt
  u = file/download-url {file_id: $f}
  restart
  anon GET $u.url -> text "content of a.txt"
  restart {secret: another-secret}
  anon GET $u.url -> 401 unauthorized
`);
