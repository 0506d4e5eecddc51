/**
 * What holds for every request (docs/api.md): the order of checks, methods, request ids, problems, and the fields that
 * nothing reads. request-bodies.test.ts has bodies as bytes; keys.test.ts the secrets, idempotency.test.ts the
 * Idempotency-Key.
 */
import { DECLARED, ENDPOINTS } from "../../src/api/routes.ts";
import { ADMIN_KEY, SECRET } from "../support/hub.ts";
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

const MIB = 1024 * 1024;
const UNKNOWN = "config/template||nope|task|task/create/x|status/|STATUS|node/n1/x";

/** A path, and the methods that it takes. */
const PATHS = Map.groupBy(DECLARED, ({ path }) => path.replace("/api/v1/", "").replaceAll(/:\\w+/g, "x"));

/** Each method that a path does not take. */
const WRONG_METHODS = [...PATHS].map(([path, endpoints]) => {
  const allowed = endpoints.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  const others = ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"].filter((method) => !allowed.includes(method));
  return others
    .map(
      (method) =>
        `anon <|B >${method} ${path} -> 405 method_not_allowed header.allow "${allowed.join(", ")}"`,
    )
    .join("\n");
});

/** POST endpoints that read JSON. */
const JSON_POSTS = ENDPOINTS.filter(({ method, kind }) => method === "POST" && kind === "json").map(
  ({ path }) => path.replace("/api/v1/", ""),
);

/** Strange bytes of a path are just not found. */
const STRANGE = `%2e%2e%2fx|a%2Fb|%00|%zz|%ff|%F0%9F%A6%8A|'%20OR%201|${"x".repeat(5_000)}`;
const PROBLEM = "{success: false, type: ~urn, title: *, status: 404, detail: *, errors: absent}";

transcripts(`
-- an unknown path is 404, before any other check (<A|B>)
  anon <|B ><GET|PUT|DELETE|OPTIONS> nope -> 404 not_found header.allow absent
  anon <|B >GET <${UNKNOWN}> -> 404 not_found
  anon <|B >nope -> 404 not_found

-- a wrong method is 405 with Allow, before the secret is checked (<A|B>)
  ${WRONG_METHODS.join("\n")}
  anon <|B >status {} -> 405 method_not_allowed header.allow "GET, HEAD"

-- a literal path takes precedence over a parameter, for every method; a parameter is decoded
  GET node/<register|heartbeat> -> 405 method_not_allowed
  GET node/list -> nodes []
  DELETE file/<upload|list|delete> -> 405 method_not_allowed
  nodes a:b
  GET node/a%3Ab -> node.node_id a:b
  GET node/<${STRANGE}> -> 404 node_not_found
  GET file/download/<${STRANGE}> -> 404 file_not_found
  DELETE file/<${STRANGE}> -> 404 file_not_found

-- the order of checks: 404, 405, 401, 403, 413/415/400, then the state of the resource (task/<delete|revoke>)
  admin task/<delete|revoke> {task_id: ${NO_ID}} -> 404 task_not_found
  admin task/<delete|revoke> {task_id: 5} -> 400 task_id
  admin task/<delete|revoke> {task_id: 5, filler: x*${MIB}} -> 413 body_too_large
  admin with {Content-Type: multipart/form-data} task/<delete|revoke> '{}' -> 415 unsupported_media_type
  with {X-Admin-Key: wrong, Content-Type: multipart/form-data} task/<delete|revoke> '{}' -> 403 admin_key_required
  with {X-Admin-Key: wrong, X-Matrix-Secret: wrong} task/<delete|revoke> '{}' -> 401 unauthorized
  with {X-Admin-Key: wrong, X-Matrix-Secret: wrong} PUT task/<delete|revoke> -> 405 method_not_allowed
  with {X-Admin-Key: wrong, X-Matrix-Secret: wrong} PUT task/<delete|revoke>/x -> 404 not_found

-- the order of checks: a missing and a wrong administrator key are both 403, and the detail tells them apart
  task/delete {task_id: ${NO_ID}} -> 403 admin_key_required detail "~Send the administrator key "
  with {X-Admin-Key: ${SECRET}} task/delete {task_id: ${NO_ID}} -> 403 admin_key_required detail "~unknown, expired or revoked."
  with {X-Admin-Key: ${SECRET}, X-Matrix-Secret: ${ADMIN_KEY}} task/delete {task_id: ${NO_ID}} -> 401 unauthorized

-- the order of checks: for the state of the resource: 404, then 403, then 409
  nodes n1 n2
  t = task/create
  task/claim $t n1
  task/complete $t n1
  task/complete $t ghost {result: {lesson: another}} -> 404 node_not_found
  task/complete $t n2 {result: {lesson: another}} -> 403 not_assigned_to_node
  task/complete $t n1 {result: {lesson: another}} -> 409 task_completed
  task/claim $t ghost -> 404 node_not_found

-- the order of checks: a bad query is 400 after the secret and before the state of the resource
  anon B GET message/history?node_id=ghost&count=0 -> 401 unauthorized
  B GET message/history?node_id=ghost&count=0 -> 400 count
  B GET message/history?node_id=ghost -> 404 node_not_found

-- the order of checks: a refused request changes nothing
  anon task/create -> 401 unauthorized
  task/create {priority: 9} -> 400 priority
  with {Content-Type: multipart/form-data} task/create '{}' -> 415 unsupported_media_type
  GET task/list -> total 0
  GET events?since=0&kind=task.created -> []

-- X-Request-Id: is the client's, if it sent a valid one, and on every answer
  with {X-Request-Id: <abc-123|x|x*128|00-4bf92f3577b34da6a3ce929d0e0e4736-01|a/b=c;d>} GET status ->
  header.x-request-id <abc-123|x|x*128|00-4bf92f3577b34da6a3ce929d0e0e4736-01|a/b=c;d>
  with {X-Request-Id: <""|x*129|"a b"|é>} GET status -> header.x-request-id !<""|x*129|"~a b"|é>
  with {X-Request-Id: mine} GET nope -> 404 not_found header.x-request-id mine
  with {X-Request-Id: mine} OPTIONS status -> 405 method_not_allowed header.x-request-id mine
  with {X-Request-Id: mine} anon task/create -> 401 unauthorized header.x-request-id mine
  with {X-Request-Id: mine} task/delete -> 403 admin_key_required header.x-request-id mine
  with {X-Request-Id: mine} file/upload 'x' -> 415 unsupported_media_type header.x-request-id mine
  with {X-Request-Id: mine} task/create {x: x*${MIB}} -> 413 body_too_large header.x-request-id mine

-- a problem: has the members of RFC 9457 and the hub's own, and one type and title for each code
  one = GET node/x -> 404 node_not_found ${PROBLEM}
  GET node/y -> 404 node_not_found {type: $one.type, title: $one.title}
  GET file/download/x -> 404 file_not_found type !$one.type
  node/heartbeat -> 400 node_id
  GET status -> header.www-authenticate absent

-- a problem: 401 tells how to authenticate (<A|B>)
  anon <|B >task/create -> 401 unauthorized {detail: "~Send the hub's secret ", header: {www-authenticate: *}}
  with {X-Matrix-Secret: <not-the-secret|x*2000|${SECRET.toUpperCase()}>} <|B >task/create ->
  401 unauthorized {detail: "~unknown, expired or revoked.", header: {www-authenticate: *}}

-- a JSON body: that is no object is one error with the path "", at every endpoint that reads one
  task/create <' '|'{'|'[]'|'[{}]'|'null'|'5'|'"x"'|'true'|'{}{}'|'a=1'> -> 400 ""
  admin <${JSON_POSTS.join("|")}> '[1]' -> 400 ""
  admin with {Content-Type: multipart/form-data} <${JSON_POSTS.join("|")}> 'x' -> 415 unsupported_media_type

-- a JSON body: may have unknown fields, also those that are names in JavaScript
  t = task/create '{"title":"t","description":"d","x":1,"constructor":{"z":[null]},"":"","toString":1}' -> task.x absent
  task $t -> x absent
  task/create '{"title":"t","description":"d","__proto__":{"priority":9},"priority":0}' -> task.priority 0

-- a JSON body: errors name every bad field once, with dotted paths
  node/register {node_id: "a b", name: "", host: 5, port: "80", capabilities: [x, 1], max_tasks: 0} ->
  400 node_id name host port capabilities.1 max_tasks
  message/send {from_node: "a b", to_node: 5, content: 5, type: alert, require_ack: yes} -> 400 from_node to_node content type require_ack
  message/receive {node_id: "", count: 0, blocking: 1, timeout: 301} -> 400 node_id count blocking timeout
  GET events?since=-1&limit=1001&kind=nope -> 400 since limit kind

-- a JSON body: with NUL or a lone surrogate in a text is refused for that field
  ${["a\\u0000b", "\\ud800", "\\udc00x", "x\\ud83d"]
    .map((bad) =>
      `task/create '{"title":BAD,"description":BAD}' -> 400 title description
  task/create '{"title":"t","description":"d","task_type":BAD}' -> 400 task_type
  node/register '{"node_id":BAD,"name":BAD}' -> 400 node_id name
  node/register '{"node_id":"n2","name":"n","host":BAD,"capabilities":[BAD]}' -> 400 host capabilities.0
  message/send '{"from_node":"n1","to_node":"n1","content":BAD}' -> 400 content
  task/complete '{"task_id":"t","node_id":"n1","result":{"problem":BAD,"improvement":BAD,"lesson":BAD}}' ->
  400 result.problem result.improvement result.lesson
  admin task/revoke '{"task_id":"t","reason":BAD}' -> 400 reason
  file/delete '{"file_id":BAD}' -> 400 file_id`.replaceAll("BAD", `"${bad}"`),
    )
    .join("\n")}
  # The byte itself is no JSON.
  task/create '{"title":"a\0b","description":"d"}' -> 400 ""

-- what nothing reads is named: in the body, and not what is read or null (<A|B>)
  <|B >task/create {timout_s: 5, labels: [a], priority: 0} -> ignored [timout_s, labels]
  <|B >task/create {<timout_s: null, assigned_node: n1|priority: 0>} -> ignored absent
  <|B >task/create '{"title":"t","description":"d","__proto__":{"a":1},"constructor":2}' -> ignored [__proto__, constructor]
  t = task/create {labels: 1} -> task {ignored: absent, labels: absent}
  task $t -> {ignored: absent, labels: absent}

-- what nothing reads is named: with dots where it is nested; what is stored as it was sent has none
  nodes n1
  t = task/create
  task/batch-assign {assignments: [{task_id: $t, node_id: n1}, {task_id: $t, node_id: n1, nod: 1}], x: 1} ->
  ignored [assignments.1.nod, x]
  task/complete $t n1 {result: {more: {deep: 1}}, reslt: 1} -> ignored [reslt]

-- what nothing reads is named: of each request of a batch in its own answer, and of all at its top (<A|B>)
  <|B >batch {requests: [{path: task/create, body: {title: t, description: d, timout_s: 1}, id: 7},
    {path: task/create, body: {title: t, description: d}}], dry: true} ->
  {ignored: [requests.0.id, dry, requests.0.body.timout_s], answers: [{body: {ignored: [timout_s]}}, {body: {ignored: absent}}]}

-- what nothing reads is named: of a query, also where the list comes in parts, and again in a repeat
  task/create
  GET task/list?statu=open&x=1&status=open&page= -> ignored [statu, x]
  GET task/list?status=open -> ignored absent
  GET status?_=1 -> ignored [_]
  task/create?title=other {title: t, description: d, y: 1} -> ignored [y, title]
  key k task/create {labels: 1} -> ignored [labels]
  replay

-- what nothing reads is named: the first 20, each cut to 100 characters
  task/create {${Array.from({ length: 5_000 }, (_, i) => `x${i}: {y: ${i}}`).join(", ")}} ->
  ignored [${Array.from({ length: 20 }, (_, i) => `x${i}`).join(", ")}]
  task/create {${"n".repeat(5_000)}: 1} -> ignored [n*100]

-- a body full of invalid fields gets a short answer
  node/register n1 {name: n, capabilities: [${"1, ".repeat(5_000)}]} -> 400 capabilities
  task/batch-assign {assignments: [${"{}, ".repeat(150)}]} ->
  400 ${Array.from({ length: 50 }, (_, i) => `assignments.${i}.task_id assignments.${i}.node_id`).join(" ")}
`);
