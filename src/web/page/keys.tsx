/** The keys of the hub and the invitations of nodes. What is secret is shown once. Needs the administrator key. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { qrCode } from "../../lib/qr-code.ts";
import { type Fields, FormButton, type FormOf, act, deletion, making } from "./action.tsx";
import { showDialog } from "./dialog.tsx";
import { type FieldOf, nodeNames } from "./field.tsx";
import { countOf, numberOf, oneOf, quoted, sizeOf } from "./format.ts";
import { Pager } from "./list-page.tsx";
import { List, type ListOf } from "./list.tsx";
import { useLoad } from "./load.ts";
import { Age, Head, Paste, Section, State } from "./parts.tsx";
import { route, to } from "./route.ts";
import { call } from "./session.ts";

const ROLES = ["full", ["viewer", "viewer: only reads"], "admin"] as const;
const VARIANTS = [["", "the listener's"], "A", "B"] as const;

const DAY_S = 86_400;
const MINUTE_S = 60;
const PAGE = 50;

const KEYS: ListOf<AnswerOf<"key/list", Variant>["keys"][number]> = {
  label: "Keys",
  keyOf: ({ name }) => name,
  isGone: ({ state }) => state !== "valid",
  columns: [
    ["State", (key) => <State word={key.state} />],
    ["Name", (key) => key.name, "name"],
    ["Role", (key) => key.role],
    ["Variant", (key) => key.variant],
    ["Node", (key) => key.node_id, "names"],
    ["Rewards", ({ mint_per_day: mint }) => mint !== null && `${countOf(mint)} LUX a day`],
    ["Used", ({ used }) => used && `${used.tasks} unfinished, ${sizeOf(used.bytes)}`],
    ["Made", (key) => <Age at={key.created_at} />],
    ["Ends", (key) => <Age at={key.revoked_at ?? key.expires_at} />],
  ],
  actions: ({ name, state, created_at }) => [
    state === "valid" &&
      created_at !== null &&
      act("revoke", "Revoke", () => call("key/revoke", { name }), "Revoked.", {
        look: "danger",
        ask: { text: `Revoke ${name}? Its open calls and streams end within a second.`, yes: "Revoke" },
      }),
  ],
};

export function Keys(): VNode {
  const { cursor } = route.value.query;
  const { value, error } = useLoad(
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
  return (
    <>
      <Head
        error={error}
        more={<FormButton label="New key" name="open-key" look="primary" form={addingKey} />}
      >
        Keys
      </Head>
      {value && <List list={KEYS} rows={value.keys} />}
      {value && <Invitations page={value.invited} />}
    </>
  );
}

type Made = AnswerOf<"key/add", Variant>;

function addingKey(): FormOf {
  return {
    action: making(["add", "Add", "Added."], addKey, showKey),
    fields: [
      { name: "name", label: "Name", required: true },
      [
        { name: "role", label: "Role", options: ROLES },
        { name: "variant", label: "Variant", options: VARIANTS },
        { name: "node", label: "Bound to node", suggest: nodeNames },
      ],
      [
        { name: "days", label: "Valid for (days)", type: "number" },
        { name: "mint", label: "Rewards (LUX a day at most)", type: "number" },
      ],
    ],
  };
}

function addKey({ name = "", role, variant, node, mint, days }: Fields): Promise<Made> {
  return call("key/add", {
    name,
    role: oneOf(["full", "viewer", "admin"] as const, role),
    variant: oneOf(["A", "B"] as const, variant),
    node_id: node,
    mint_per_day: numberOf(mint),
    expires_in_s: days ? Number(days) * DAY_S : undefined,
  });
}

/** A node that works with a key: a key for `box.*` is also that of `box`. */
function nodeOf(bound: string | null): string {
  return bound === null ? "worker-1" : bound.replace(/\.\*$/, "");
}

function showKey({ secret, key }: Made): void {
  const url = new URL(".", location.href).href;
  const words =
    key.role === "full" ? ["worker", "--node", quoted(nodeOf(key.node_id)), "--agent", "claude"] : ["top"];
  const line = [`LUXHUB_URL=${quoted(url)}`, `LUXHUB_SECRET=${quoted(secret)}`, "luxhub", ...words].join(" ");
  const body = (
    <>
      <p>The secret is shown only once: the hub keeps only its hash.</p>
      <Paste text={secret} />
      {key.role !== "admin" && (
        <>
          <p>
            {key.role === "full"
              ? "Start a worker with it: an agent, or a command after -- in place of --agent claude."
              : "Whoever signs in with it at this address can look at everything, and change nothing:"}
          </p>
          {key.role === "viewer" && <Paste text={url} label="Copy the address" />}
          <Command line={line} host={location.hostname} />
        </>
      )}
    </>
  );
  showDialog({ title: `The secret of ${key.name} (${key.role})`, body, close: "Done" });
}

// ---- Invitations

/** With an `invitation` that of a node, else that of a standby. */
type Invited = AnswerOf<"invitation/create", Variant> | AnswerOf<"standby/invite", Variant>;
type Invitations = AnswerOf<"invitation/list", Variant>;

const INVITATIONS: ListOf<Invitations["invitations"][number]> = {
  label: "Invitations",
  keyOf: ({ invitation_id }) => invitation_id,
  isGone: ({ state }) => state === "expired",
  columns: [
    ["State", ({ state }) => <State word={state} />],
    ["Node", ({ node_id }) => node_id, "name"],
    ["Key", ({ key }) => key, "names"],
    ["Made", ({ created_at }) => <Age at={created_at} />],
    ["Joined", ({ used_at }) => <Age at={used_at} />],
    ["Ends", ({ expires_at }) => <Age at={expires_at} />],
  ],
  actions: ({ invitation_id, node_id }) => [
    deletion(
      "delete-invitation",
      `Delete the invitation of ${node_id}? Nobody can join with it any more.`,
      () => call("invitation/delete", { invitation_id }),
    ),
  ],
};

function Invitations({ page: { invitations, next_cursor: next } }: { page: Invitations }): VNode {
  return (
    <Section
      title="Invitations"
      note={
        <>
          <FormButton label="Invite a standby" name="open-standby" form={invitingStandby} />
          <FormButton label="Invite a node" name="open-invite" form={inviting} />
        </>
      }
    >
      <List
        list={INVITATIONS}
        rows={invitations}
        empty="There are no invitations. With one, a machine joins with one line."
      />
      <Pager
        back={route.value.query["cursor"] && ["The oldest", to("keys")]}
        next={next !== null && ["Newer", to("keys", "", { cursor: next })]}
      />
    </Section>
  );
}

function inviting(): FormOf {
  const invite = ({ node_id = "", minutes, url }: Fields): Promise<Invited> => {
    const expires_in_s = minutes ? Number(minutes) * MINUTE_S : undefined;
    return call("invitation/create", { node_id, expires_in_s, url });
  };
  return {
    action: making(["invite", "Invite", "Invited."], invite, showInvitation),
    fields: [
      [
        { name: "node_id", label: "Node, also a new one", suggest: nodeNames, required: true },
        { name: "minutes", label: "Valid for (minutes)", type: "number", value: "60" },
      ],
      urlField(),
    ],
  };
}

function invitingStandby(): FormOf {
  const invite = ({ name = "", url }: Fields): Promise<Invited> => call("standby/invite", { name, url });
  return {
    action: making(["invite-standby", "Invite", "Invited."], invite, showInvitation),
    fields: [{ name: "name", label: "Name of the standby, and of its key", required: true }, urlField()],
  };
}

function urlField(): FieldOf {
  // Over plain HTTP the hub may know a better address than this one.
  const here = location.protocol === "https:" ? new URL(".", location.href).href : "";
  return { name: "url", label: "URL of the hub there (empty: it chooses)", value: here };
}

function showInvitation(made: Invited): void {
  const { url, other_urls } = made;
  const line = `luxhub join ${quoted(made.line)}`;
  const name = "invitation" in made ? made.invitation.node_id : made.name;
  const body = (
    <>
      {"invitation" in made ? (
        <p>
          Run this line on its machine, once. It is shown only here, and anyone who has it can join as this
          node. It ends <Age at={made.invitation.expires_at} />.
        </p>
      ) : (
        <p>
          Run this line on its machine, once, and then luxhub serve. It is shown only here, and anyone who has
          it can read all that the hub has, with its secrets.
        </p>
      )}
      <Command line={line} host={new URL(url).hostname} />
      {other_urls.length > 0 && <p class="quiet">Other addresses of the hub: {other_urls.join(" ")}</p>}
    </>
  );
  showDialog({ title: `The invitation of ${name}`, body, close: "Done" });
}

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
