/** The second copy of the hub on the page Control: who follows, how far behind, and how a standby is promoted. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { type Action, Actions, act } from "./action.tsx";
import { countOf, durationOf } from "./format.ts";
import { type Copy, lagOf } from "./health.ts";
import { showDialog } from "./dialog.tsx";
import { List, type ListOf } from "./list.tsx";
import { useEvery } from "./load.ts";
import { Age, Facts, Section, State, Why } from "./parts.tsx";
import { call } from "./session.ts";

type Pair = NonNullable<Copy>;
type Promoted = AnswerOf<"promote", Variant>;

const EVERY_MS = 5_000;

/** While there is a pair, loads again and again: a hub that accepts no writes has no events of its own. */
export function useCopy(copy: Copy, reload: () => void): void {
  useEvery(copy === undefined ? null : EVERY_MS, reload);
}

const STANDBYS: ListOf<Pair["standbys"][number]> = {
  label: "Standbys",
  keyOf: ({ name }) => name,
  columns: [
    [
      "State",
      ({ following, since }) => (
        <State word={following ? "following" : since === null ? "invited" : "lost"} />
      ),
    ],
    ["Standby", ({ name }) => name, "name"],
    ["At", ({ url, fault }) => [url, <Why text={fault} />], "wide"],
    ["Behind", (standby) => standby.since !== null && lagOf(standby), "number"],
    ["Since", ({ since }) => <Age at={since} />],
  ],
};

/** Null: there is none. */
export function Copies({ copy }: { copy: Copy }): VNode | null {
  if (copy === undefined) return null;
  const { role, hub, entry, term, standbys } = copy;
  return (
    <Section title="Second copy" note={role === "standby" && <Actions actions={[promotion(copy)]} />}>
      <Facts
        facts={[
          ["This hub", role],
          ["Writes go to", hub],
          ["Last entry", entry !== null && String(entry)],
          ["Term", countOf(term)],
        ]}
      />
      {role !== "superseded" && <List list={STANDBYS} rows={standbys} empty="No standby is invited." />}
    </Section>
  );
}

function showPromoted(promoted: Promoted): void {
  const body = (
    <>
      <p>Its last entry is {promoted.entry}.</p>
      <p>{lossOf(promoted)}</p>
    </>
  );
  showDialog({ title: "This hub accepts writes", body, close: "Done" });
}

function promotion({ hub, standbys }: Pair): Action {
  const lags = standbys.map(lagOf).join();
  const text = `Promote this standby? It takes what ${hub ?? "the first hub"} still has, if that one answers, and accepts writes in its place. It is behind by ${lags}.`;
  return act("promote", "Promote", async () => showPromoted(await call("promote", {})), "Promoted.", {
    look: "danger",
    ask: { text, yes: "Promote" },
  });
}

function lossOf({ missing, lag_s }: Promoted): string {
  if (missing === 0) return "Nothing is missing: the first hub handed over all that it had.";
  const known = missing === null ? "" : `, at least ${countOf(missing)} entries`;
  return `The first hub did not answer: whatever it wrote in the ${durationOf(lag_s)} before may be missing${known}.`;
}
