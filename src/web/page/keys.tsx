/**
 * The keys of the hub and the invitations of nodes: list, add, revoke. Needs the administrator key. What is secret is
 * shown once.
 */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { qrCode } from "../../lib/qr-code.ts";
import { countOf, numberOf, oneOf, quoted, sizeOf } from "./format.ts";
import { NodeField } from "./suggest-field.tsx";
import {
  Age,
  Button,
  Close,
  Delete,
  Field,
  type Fields,
  Form,
  Head,
  Modal,
  Pager,
  Paste,
  Section,
  Select,
  State,
  Table,
  runAction,
  runAsked,
  useLoad,
} from "./parts.tsx";
import { route, to } from "./route.ts";
import { call } from "./session.ts";

const ROLES = ["full", ["viewer", "viewer: only reads"], "admin"] as const;
const VARIANTS = [["", "the listener's"], "A", "B"] as const;

const DAY_S = 86_400;
const MINUTE_S = 60;
/** Invitations of a page. */
const PAGE = 50;

export function Keys(): VNode {
  const { cursor } = route.value.query;
  const loaded = useLoad(
    `keys ${cursor}`,
    async (ask) => {
      const [{ keys }, invited] = await Promise.all([
        ask("key/list", {}),
        ask("invitation/list", { cursor, per_page: PAGE }),
      ]);
      return { keys, invited };
    },
    /^node\.joined$/,
  );
  const [made, setMade] = useState<Made | null>(null);
  const { value, error } = loaded;
  const revoke = (name: string): Promise<boolean> =>
    runAsked(`Revoke ${name}? Its open calls and streams end within a second.`, "Revoke", "Revoked.", () =>
      call("key/revoke", { name }),
    );
  const add = ({ name = "", role, variant, node, mint, days }: Fields): Promise<boolean> =>
    runAction("Added.", async () => {
      const { secret, key } = await call("key/add", {
        name,
        role: oneOf(["full", "viewer", "admin"] as const, role),
        variant: oneOf(["A", "B"] as const, variant),
        node_id: node,
        mint_per_day: numberOf(mint),
        expires_in_s: days ? Number(days) * DAY_S : undefined,
      });
      setMade({ name, secret, role: key.role, node: key.node_id });
    });
  return (
    <>
      <Head error={error}>Keys</Head>
      <Form class="filters" onSend={add}>
        <Field label="Name" name="name" required />
        <Select label="Role" name="role" options={ROLES} />
        <Select label="Variant" name="variant" options={VARIANTS} />
        <NodeField label="Bound to node" name="node" />
        <Field label="Valid for (days)" name="days" type="number" />
        <Field label="Rewards (LUX a day at most)" name="mint" type="number" />
        <button class="primary" data-do="add">
          Add
        </button>
      </Form>
      {value && (
        <Table
          label="Keys"
          rows={value.keys}
          keyOf={(key) => key.name}
          classOf={(key) => (key.state === "valid" ? undefined : "gone")}
          columns={[
            ["State", (key) => <State word={key.state} />],
            ["Name", (key) => key.name, "name"],
            ["Role", (key) => key.role],
            ["Variant", (key) => key.variant],
            ["Node", (key) => key.node_id, "names"],
            ["Rewards", (key) => key.mint_per_day !== null && `${countOf(key.mint_per_day)} LUX a day`],
            ["Used", (key) => key.used && `${key.used.tasks} unfinished, ${sizeOf(key.used.bytes)}`],
            ["Made", (key) => <Age at={key.created_at} />],
            ["Ends", (key) => <Age at={key.revoked_at ?? key.expires_at} />],
            [
              "Actions",
              (key) =>
                key.state === "valid" &&
                key.created_at !== null && (
                  <Button class="danger" data-do="revoke" onClick={() => revoke(key.name)}>
                    Revoke
                  </Button>
                ),
              "buttons",
            ],
          ]}
        />
      )}
      {value && <Invitations page={value.invited} />}
      {made && <NewKey made={made} onClose={() => setMade(null)} />}
    </>
  );
}

type Invited = AnswerOf<"invitation/create", Variant>;

/** Who was invited, and has joined; the form for a new invitation. */
function Invitations({ page }: { page: AnswerOf<"invitation/list", Variant> }): VNode {
  const { invitations, next_cursor: next } = page;
  const [made, setMade] = useState<Invited | null>(null);
  const invite = ({ node_id = "", minutes, url }: Fields): Promise<boolean> =>
    runAction("Invited.", async () => {
      const expires_in_s = minutes ? Number(minutes) * MINUTE_S : undefined;
      setMade(await call("invitation/create", { node_id, expires_in_s, url }));
    });
  // Over plain HTTP the hub may know a better address than this one.
  const here = location.protocol === "https:" ? new URL(".", location.href).href : "";
  return (
    <Section title="Invitations: a machine joins with one line">
      <Form class="filters" onSend={invite}>
        <NodeField label="Node, also a new one" name="node_id" required />
        <Field label="Valid for (minutes)" name="minutes" type="number" value="60" />
        <Field label="URL of the hub there (empty: it chooses)" name="url" value={here} />
        <button class="primary" data-do="invite">
          Invite
        </button>
      </Form>
      {invitations.length > 0 && (
        <Table
          label="Invitations"
          rows={invitations}
          keyOf={(one) => one.invitation_id}
          classOf={(one) => (one.state === "expired" ? "gone" : undefined)}
          columns={[
            ["State", (one) => <State word={one.state} />],
            ["Node", (one) => one.node_id, "name"],
            ["Key", (one) => one.key, "names"],
            ["Made", (one) => <Age at={one.created_at} />],
            ["Joined", (one) => <Age at={one.used_at} />],
            ["Ends", (one) => <Age at={one.expires_at} />],
            [
              "Actions",
              (one) => (
                <Delete
                  data-do="delete-invitation"
                  ask={`Delete the invitation of ${one.node_id}? Nobody can join with it any more.`}
                  work={() => call("invitation/delete", { invitation_id: one.invitation_id })}
                />
              ),
              "buttons",
            ],
          ]}
        />
      )}
      <Pager
        back={route.value.query["cursor"] && ["The oldest", to("keys")]}
        next={next !== null && ["Newer", to("keys", "", { cursor: next })]}
      />
      {made && <NewInvitation made={made} onClose={() => setMade(null)} />}
    </Section>
  );
}

function NewInvitation({ made, onClose }: { made: Invited; onClose: () => void }): VNode {
  const { invitation, url, other_urls } = made;
  const line = `luxhub join ${quoted(made.line)}`;
  return (
    <Modal title={`The invitation of ${invitation.node_id}`} onClose={onClose}>
      <p>
        Run this line on its machine, once. It is shown only here, and anyone who has it can join as this
        node. It ends <Age at={invitation.expires_at} />.
      </p>
      <Command line={line} host={new URL(url).hostname} />
      {other_urls.length > 0 && <p class="quiet">Other addresses of the hub: {other_urls.join(" ")}</p>}
      <Close word="Done" />
    </Modal>
  );
}

/** A command to paste or to scan where it is run. `host`: of the hub, as the command names it. */
function Command({ line, host }: { line: string; host: string }): VNode {
  return (
    <>
      <Paste text={line} label="Copy the command" />
      {/^(?:localhost|127\..*|\[::1\])$/.test(host) && (
        <p class="quiet">This address works only on the machine of the hub. Elsewhere, replace {host}.</p>
      )}
      <Qr text={line} />
    </>
  );
}

type Made = {
  readonly name: string;
  readonly secret: string;
  readonly role: string;
  readonly node: string | null;
};

/** The secret, once; and what to paste, or to scan, where it is used. */
function NewKey({ made, onClose }: { made: Made; onClose: () => void }): VNode {
  const { name, secret, role, node } = made;
  const url = new URL(".", location.href).href;
  const rest =
    role === "full" ? ["worker", "--node", quoted(node ?? "worker-1"), "--agent", "claude"] : ["top"];
  const line = [`LUXHUB_URL=${quoted(url)}`, `LUXHUB_SECRET=${quoted(secret)}`, "luxhub", ...rest].join(" ");
  return (
    <Modal title={`The secret of ${name} (${role})`} onClose={onClose}>
      <p>The secret is shown only once: the hub keeps only its hash.</p>
      <Paste text={secret} />
      {role !== "admin" && (
        <>
          <p>
            {role === "full"
              ? "Start a worker with it: an agent, or a command after -- in place of --agent claude."
              : "Watch the hub with it:"}
          </p>
          <Command line={line} host={location.hostname} />
        </>
      )}
      <Close word="Done" />
    </Modal>
  );
}

/** Dark on light in both themes, with the margin that scanners need. */
function Qr({ text }: { text: string }): VNode | null {
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
      aria-label="The command as a QR code"
      shape-rendering="crispEdges"
    >
      <path class="light" d={`M0 0h${size}v${size}h-${size}z`} />
      <path d={dark.join("")} />
    </svg>
  );
}
