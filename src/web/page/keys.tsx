/**
 * The keys of the hub and the invitations of nodes: list, add, revoke. Needs the administrator key. What is secret is
 * shown once.
 */
import { Fragment, type JSX, h } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { qrCode } from "../../lib/qr-code.ts";
import { countOf, quoted, sizeOf } from "./format.ts";
import { NodeField } from "./node-field.tsx";
import {
  Age,
  Copy,
  Fault,
  Field,
  Form,
  Modal,
  Select,
  State,
  Table,
  askToConfirm,
  runAction,
  showNotice,
  useEvents,
  useLoad,
} from "./parts.tsx";
import { route, to } from "./route.ts";
import { describe, hub } from "./session.ts";

const ROLES = [
  ["full", "full"],
  ["viewer", "viewer: only reads"],
  ["admin", "admin"],
] as const;

const VARIANTS = [
  ["", "the listener's"],
  ["A", "A"],
  ["B", "B"],
] as const;

const DAY_S = 86_400;
const MINUTE_S = 60;
/** Invitations of a page. */
const PAGE = 50;

export function Keys(): JSX.Element {
  const { cursor } = route.value.query;
  const loaded = useLoad(`keys ${cursor}`, async (from, signal) => {
    const [{ keys }, invited] = await Promise.all([
      from.call("key/list", {}, { signal }),
      from.call("invitation/list", { cursor, per_page: PAGE }, { signal }),
    ]);
    return { keys, invited };
  });
  useEvents(({ kind }) => kind === "node.joined", loaded);
  const [made, setMade] = useState<Made | null>(null);
  const { value, error } = loaded;
  const revoke = async (name: string): Promise<void> => {
    if (!(await askToConfirm(`Revoke ${name}? Its open calls and streams end within a second.`, "Revoke")))
      return;
    await runAction("Revoked.", () => hub.value.call("key/revoke", { name }));
  };
  const add = async (fields: Readonly<Record<string, string>>, form: HTMLFormElement): Promise<void> => {
    const days = Number(fields["days"] || 0);
    try {
      const { name, secret, key } = await hub.value.call("key/add", {
        name: fields["name"] ?? "",
        role: ROLES.map(([word]) => word).find((word) => word === fields["role"]),
        variant: (["A", "B"] as const).find((word) => word === fields["variant"]),
        node_id: fields["node"] || undefined,
        mint_per_day: fields["mint"] ? Number(fields["mint"]) : undefined,
        expires_in_s: days > 0 ? days * DAY_S : undefined,
      });
      setMade({ name, secret, role: key.role, node: key.node_id });
      form.reset();
      loaded.reload();
    } catch (fault) {
      showNotice(describe(fault), true);
    }
  };
  return (
    <>
      <header class="head">
        <h1>Keys</h1>
      </header>
      <Fault text={error} />
      <Form class="filters" onSend={add}>
        <Field label="Name" name="name" required />
        <Select label="Role" name="role" options={ROLES} />
        <Select label="Variant" name="variant" options={VARIANTS} />
        <NodeField label="Bound to node" name="node" />
        <Field label="Valid for (days)" name="days" type="number" />
        <Field label="Rewards (LUX a day at most)" name="mint" type="number" />
        <button type="submit" class="primary" data-do="add">
          Add
        </button>
      </Form>
      {value && (
        <Table
          label="Keys"
          head={["State", "Name", "Role", "Variant", "Node", "Rewards", "Used", "Made", "Ends", "Actions"]}
        >
          {value.keys.map((key) => (
            <tr key={key.name} class={key.state === "valid" ? undefined : "gone"}>
              <td>
                <State word={key.state} />
              </td>
              <td class="name">{key.name}</td>
              <td>{key.role}</td>
              <td>{key.variant}</td>
              <td class="names">{key.node_id}</td>
              <td>{key.mint_per_day !== null && `${countOf(key.mint_per_day)} LUX a day`}</td>
              <td>{key.used && `${key.used.tasks} unfinished, ${sizeOf(key.used.bytes)}`}</td>
              <td>
                <Age at={key.created_at} />
              </td>
              <td>
                <Age at={key.revoked_at ?? key.expires_at} />
              </td>
              <td class="buttons">
                {key.state === "valid" && key.created_at !== null && (
                  <button type="button" class="danger" data-do="revoke" onClick={() => void revoke(key.name)}>
                    Revoke
                  </button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {value && <Invitations page={value.invited} onMade={loaded.reload} />}
      {made && <NewKey made={made} onClose={() => setMade(null)} />}
    </>
  );
}

type Invited = AnswerOf<"invitation/create", Variant>;

/** Who was invited, and has joined; the form for a new invitation. */
function Invitations(props: { page: AnswerOf<"invitation/list", Variant>; onMade: () => void }): JSX.Element {
  const { invitations, next_cursor: next } = props.page;
  const [made, setMade] = useState<Invited | null>(null);
  const invite = async (fields: Readonly<Record<string, string>>, form: HTMLFormElement): Promise<void> => {
    const { node_id = "", minutes, url } = fields;
    const expires_in_s = minutes ? Number(minutes) * MINUTE_S : undefined;
    try {
      setMade(await hub.value.call("invitation/create", { node_id, expires_in_s, url: url || undefined }));
      form.reset();
      props.onMade();
    } catch (fault) {
      showNotice(describe(fault), true);
    }
  };
  const remove = async (invitation_id: string, node: string): Promise<void> => {
    if (await askToConfirm(`Delete the invitation of ${node}? Nobody can join with it any more.`, "Delete"))
      await runAction("Deleted.", () => hub.value.call("invitation/delete", { invitation_id }));
  };
  // Over plain HTTP the hub may know a better address than this one.
  const here = location.protocol === "https:" ? new URL(".", location.href).href : "";
  return (
    <section>
      <h2>Invitations: a machine joins with one line</h2>
      <Form class="filters" onSend={invite}>
        <NodeField label="Node, also a new one" name="node_id" required />
        <Field label="Valid for (minutes)" name="minutes" type="number" value="60" />
        <Field label="URL of the hub there (empty: it chooses)" name="url" value={here} />
        <button type="submit" class="primary" data-do="invite">
          Invite
        </button>
      </Form>
      {invitations.length > 0 && (
        <Table label="Invitations" head={["State", "Node", "Key", "Made", "Joined", "Ends", "Actions"]}>
          {invitations.map((one) => (
            <tr key={one.invitation_id} class={one.state === "expired" ? "gone" : undefined}>
              <td>
                <State word={one.state} />
              </td>
              <td class="name">{one.node_id}</td>
              <td class="names">{one.key}</td>
              <td>
                <Age at={one.created_at} />
              </td>
              <td>
                <Age at={one.used_at} />
              </td>
              <td>
                <Age at={one.expires_at} />
              </td>
              <td class="buttons">
                <button
                  type="button"
                  class="danger"
                  data-do="delete-invitation"
                  onClick={() => void remove(one.invitation_id, one.node_id)}
                >
                  Delete
                </button>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <nav class="pager" aria-label="Pages">
        {route.value.query["cursor"] && <a href={to("keys")}>The oldest</a>}
        {next !== null && (
          <a rel="next" href={to("keys", "", { cursor: next })}>
            Newer
          </a>
        )}
      </nav>
      {made && <NewInvitation made={made} onClose={() => setMade(null)} />}
    </section>
  );
}

function NewInvitation({ made, onClose }: { made: Invited; onClose: () => void }): JSX.Element {
  const { invitation, url, other_urls } = made;
  const line = `luxhub join ${quoted(made.line)}`;
  return (
    <Modal title={`The invitation of ${invitation.node_id}`} onClose={onClose}>
      <p>
        Run this line on its machine, once. It is shown only here, and anyone who has it can join as this
        node. It ends <Age at={invitation.expires_at} />.
      </p>
      <p class="paste">
        <code>{line}</code> <Copy text={line} label="Copy the command" />
      </p>
      {isLocal(new URL(url).hostname) && <LocalOnly host={new URL(url).hostname} />}
      {other_urls.length > 0 && <p class="quiet">Other addresses of the hub: {other_urls.join(" ")}</p>}
      <Qr text={line} label="The command as a QR code" />
      <form method="dialog" class="buttons">
        <button>Done</button>
      </form>
    </Modal>
  );
}

function isLocal(hostname: string): boolean {
  return /^(?:localhost|127\..*|\[::1\])$/.test(hostname);
}

function LocalOnly({ host }: { host: string }): JSX.Element {
  return <p class="quiet">This address works only on the machine of the hub. Elsewhere, replace {host}.</p>;
}

type Made = {
  readonly name: string;
  readonly secret: string;
  readonly role: string;
  readonly node: string | null;
};

/** The secret, once; and what to paste, or to scan, where it is used. */
function NewKey({ made, onClose }: { made: Made; onClose: () => void }): JSX.Element {
  const { name, secret, role, node } = made;
  const url = new URL(".", location.href).href;
  const rest =
    role === "full" ? ["worker", "--node", quoted(node ?? "worker-1"), "--agent", "claude"] : ["top"];
  const line = [`LUXHUB_URL=${quoted(url)}`, `LUXHUB_SECRET=${quoted(secret)}`, "luxhub", ...rest].join(" ");
  return (
    <Modal title={`The secret of ${name}`} onClose={onClose}>
      <p>The secret is shown only once: the hub keeps only its hash.</p>
      <p class="paste">
        <code>{secret}</code> <Copy text={secret} label="Copy" />
      </p>
      {role !== "admin" && (
        <>
          <p>
            {role === "full"
              ? "Start a worker with it: an agent, or a command after -- in place of --agent claude."
              : "Watch the hub with it:"}
          </p>
          <p class="paste">
            <code>{line}</code> <Copy text={line} label="Copy the command" />
          </p>
          {isLocal(location.hostname) && <LocalOnly host={location.hostname} />}
          <Qr text={line} label="The command as a QR code" />
        </>
      )}
      <form method="dialog" class="buttons">
        <button>Done</button>
      </form>
    </Modal>
  );
}

/** Dark on light in both themes, with the margin that scanners need. */
function Qr({ text, label }: { text: string; label: string }): JSX.Element | null {
  const code = qrCode(text);
  if (code === null) return null;
  const size = code.length + 8;
  const dark = code.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? `M${x + 4} ${y + 4}h1v1h-1z` : [])),
  );
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path class="light" d={`M0 0h${size}v${size}h-${size}z`} />
      <path d={dark.join("")} />
    </svg>
  );
}
