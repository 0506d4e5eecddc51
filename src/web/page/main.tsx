/** The dashboard's frame: sign-in, navigation, keyboard and theme; and the view for each address. */
import { type ComponentChildren, Fragment, type TargetedMouseEvent, type VNode, h, render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { BatchDialog } from "./batches.tsx";
import { countOf } from "./format.ts";
import { Find, isFindOpen } from "./find.tsx";
import { followAgain, liveFault } from "./live.ts";
import { NodePage, Nodes } from "./nodes.tsx";
import { Overview } from "./overview.tsx";
import { type Fields, Form, act } from "./action.tsx";
import { Notices } from "./notice.tsx";
import { slowLoads } from "./load.ts";
import { Dialogs, Modal, showDialog } from "./dialog.tsx";
import { Button, type FactOf, Fault, Facts, Menu, NotLoaded } from "./parts.tsx";
import { keepPlaces } from "./places.ts";
import { drawIcon, followPulse, hubName, pausedWords, pulse } from "./pulse.ts";
import { route, subject, to } from "./route.ts";
import {
  describe,
  expired,
  hasSecret,
  isAdmin,
  isOnline,
  isPutAway,
  isReady,
  linkFault,
  mayAct,
  session,
  signIn,
  signOut,
} from "./session.ts";
import { Control } from "./control.tsx";
import { Costs } from "./costs.tsx";
import { Events } from "./events.tsx";
import { Files } from "./files.tsx";
import { GroupPage, Groups } from "./groups.tsx";
import { Inbox } from "./inbox.tsx";
import { Keys } from "./keys.tsx";
import { Lux } from "./lux.tsx";
import { Messages } from "./messages.tsx";
import { NewTask } from "./new-task.tsx";
import { NotePage, Notes } from "./notes.tsx";
import { Schedules } from "./schedules.tsx";
import { drawWith, drawn } from "./shared.ts";
import { isUtc, setUtc } from "./times.ts";
import { TaskPage } from "./task.tsx";
import { Tasks } from "./tasks.tsx";

type View = readonly [name: string, title: string, isOpen: () => boolean, draw: (id: string) => VNode];

const always = (): boolean => true;

const VIEWS: readonly View[] = [
  ["overview", "Overview", always, () => <Overview />],
  ["tasks", "Tasks", always, (id) => (id === "" ? <Tasks /> : <TaskPage key={id} id={id} />)],
  ["nodes", "Nodes", always, (id) => (id === "" ? <Nodes /> : <NodePage key={id} id={id} />)],
  ["inbox", "Inbox", hasSecret, () => <Inbox />],
  ["groups", "Groups", always, (id) => (id === "" ? <Groups /> : <GroupPage key={id} id={id} />)],
  ["schedules", "Schedules", hasSecret, () => <Schedules />],
  ["messages", "Messages", mayAct, () => <Messages />],
  ["files", "Files", always, () => <Files />],
  ["lux", "LUX", always, () => <Lux />],
  ["cost", "Cost", hasSecret, () => <Costs />],
  ["events", "Events", always, () => <Events />],
  ["notes", "Notes", hasSecret, (id) => (id === "" ? <Notes /> : <NotePage key={id} id={id} />)],
  ["control", "Control", isAdmin, () => <Control />],
  ["keys", "Keys", isAdmin, () => <Keys />],
];

const openViews = (): readonly View[] => VIEWS.filter(([, , isOpen]) => isOpen());

function Content(): VNode {
  const { view, id } = route.value;
  if (view === "new" && mayAct()) return <NewTask from={id} key={id} />;
  const shown = VIEWS.find(([name, , isOpen]) => name === view && isOpen());
  return (
    shown?.[3](id) ?? (
      <NotLoaded
        title="No such page"
        error="This page does not exist, or your key cannot open it."
        back={[to("overview"), "To the overview"]}
      />
    )
  );
}

function Frame(): VNode {
  const { view, id } = route.value;
  const views = openViews();
  const word = views.find(([name]) => name === view)?.[1] ?? (view === "new" ? "New task" : "Not found");
  const { failed } = pulse.value;
  const isGuest = session.value?.role === "none";
  const alarm = failed > 0 ? `● ${countOf(failed)} failed · ` : "";
  const title = `${alarm}${subject.value || (id && `${word}: ${id}`) || word} · ${pulse.value.name ?? "luxhub"}`;
  useLayoutEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        To the content
      </a>
      <header class="bar">
        <a class="brand" href={to("overview")}>
          <span class="mark" /> {pulse.value.name ?? "luxhub"}
        </a>
        <Pages views={views} />
        <div class="tools">
          <Bounds />
          <Button label="Find" name="find" title="Find (/)" onClick={() => (isFindOpen.value = true)} />
          <Theme />
          {isGuest && <Button label="Sign in" name="sign-out" onClick={() => signOut()} />}
          <Menu label="⋯" title="More" name="tools">
            <Button label="Keyboard" name="help" onClick={showHelp} />
            <a href="docs">Manual</a>
            <Button
              label="Times in UTC"
              name="utc"
              aria-pressed={isUtc.value}
              onClick={() => setUtc(!isUtc.value)}
            />
            {!isGuest && <Button label="Sign out" name="sign-out" onClick={() => signOut()} />}
          </Menu>
        </div>
      </header>
      {!isOnline.value && <Alarm text="The hub cannot be reached. Trying again." />}
      {pulse.value.pauses.length > 0 && view !== "overview" && (
        <p class="paused" role="status">
          <b>Paused:</b> {pulse.value.pauses.map(pausedWords).join(", ")}.{" "}
          {isAdmin() && <a href={to("control")}>Show the pauses</a>}
        </p>
      )}
      {expired.value !== "" && isPutAway.value && (
        <Alarm text={expired.value}>
          <Button label="Sign in" name="sign-in-again" onClick={() => (isPutAway.value = false)} />
        </Alarm>
      )}
      {expired.value === "" && liveFault.value !== "" && (
        <Alarm text={`The page is no longer live. ${liveFault.value}`}>
          <Button label="Follow again" name="follow" onClick={followAgain} />
        </Alarm>
      )}
      <main id="content" tabIndex={-1} data-view={id === "" ? view : `${view}/${id}`}>
        <Content />
        <Dialogs />
        {slowLoads.value > 0 && (
          <p class="quiet" role="status">
            Loading …
          </p>
        )}
      </main>
      {isFindOpen.value && <Find pages={views} />}
      {expired.value !== "" && !isPutAway.value && (
        <Modal title={expired.value} onClose={() => (isPutAway.value = true)}>
          <p>Sign in again. What you have written on this page stays.</p>
          <SignInForm />
        </Modal>
      )}
    </>
  );
}

/** The links to the pages on one line; those for which it has no room are in a menu beside it. */
function Pages({ views }: { views: readonly View[] }): VNode {
  const line = useRef<HTMLElement>(null);
  const [fitting, setFitting] = useState(views.length);
  // The links stay where they are, so that what fits does not depend on what is shown.
  const measure = (): void => {
    const room = line.current?.getBoundingClientRect();
    const places = [...(line.current?.children ?? [])].map((link) => link.getBoundingClientRect());
    if (room)
      setFitting(places.filter(({ top, right }) => top < room.bottom && right <= room.right + 1).length);
  };
  useLayoutEffect(measure);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    if (line.current) observer.observe(line.current);
    return () => observer.disconnect();
  }, []);
  const draw = ([name, word]: View, i: number): VNode => (
    <a
      key={name}
      href={to(name)}
      class={i >= fitting ? "wrapped" : undefined}
      aria-current={name === route.value.view ? "page" : undefined}
    >
      {word}
      <Count name={name} />
    </a>
  );
  const wrapped = views.slice(fitting);
  const [, here] = wrapped.find(([name]) => name === route.value.view) ?? [];
  return (
    <>
      <nav aria-label="Pages of the dashboard" ref={line}>
        {views.map(draw)}
      </nav>
      {wrapped.length > 0 && (
        <Menu label={`${here ?? "More"} ▾`} name="pages" class={here && "here"}>
          {wrapped.map((view) => draw(view, 0))}
        </Menu>
      )}
    </>
  );
}

function Alarm({ text, children }: { text: string; children?: ComponentChildren }): VNode {
  return (
    <p class="offline" role="alert">
      {text} {children}
    </p>
  );
}

function Count({ name }: { name: string }): VNode | null {
  const { deadLetters, questions, reviews } = pulse.value;
  const waiting: Readonly<Record<string, readonly [number, string]>> = {
    messages: [deadLetters ?? 0, "dead letters"],
    inbox: [(questions ?? 0) + (reviews ?? 0), "open questions and results in review"],
  };
  const [count, what] = waiting[name] ?? [0, ""];
  return count > 0 ? (
    <span class="count" title={`${countOf(count)} ${what}`}>
      {countOf(count)}
    </span>
  ) : null;
}

/** What the key cannot do, so that nobody looks for the buttons. */
function Bounds(): VNode | null {
  const { role = "full", bounds = "" } = session.value ?? {};
  if (bounds === "") return null;
  return (
    <span class="chip" title={bounds}>
      {role === "full" ? "bound key" : "read only"}
    </span>
  );
}

/** The hash is the address of the view: the link must not change it. */
function skip(event: TargetedMouseEvent<HTMLAnchorElement>): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

const KEYS = [
  ["/", "find anything: a task, node, file, group, page"],
  ["f", "the filters of a list"],
  ["j k", "next and previous row; Enter opens it"],
  ["x", "select the row, with Shift all up to it"],
  ["a", "the actions on the selected rows, or of the page; Enter does one"],
  ["n", "the next page of a list"],
  ["1 … 9", "the pages, in their order; in the inbox the answers"],
  ["p r", "pass and reject, in the inbox; Enter does it"],
  ["?", "this help"],
] as const;

function showHelp(): void {
  const facts = KEYS.map(([keys, words]): FactOf => [
    keys.split(" ").map((key) => (
      <>
        <kbd>{key}</kbd>{" "}
      </>
    )),
    words,
  ]);
  const body = (
    <>
      <Facts facts={facts} />
      <p>
        The hub serves its <a href="docs">manual</a> and an <a href="docs/api-reference">API reference</a>.
      </p>
    </>
  );
  showDialog({ title: "Keyboard", body, close: "Close" });
}

// ---- Theme

const THEME = "luxhub.theme";
const theme = drawn(localStorage.getItem(THEME) ?? "");

function Theme(): VNode {
  const isDark =
    theme.value === "dark" || (theme.value === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  }, [theme.value]);
  const words = isDark ? "Light colours" : "Dark colours";
  const change = (): void => {
    theme.value = isDark ? "light" : "dark";
    localStorage.setItem(THEME, theme.value);
  };
  return <Button label={isDark ? "☀" : "☾"} name="theme" aria-label={words} title={words} onClick={change} />;
}

// ---- Sign-in

function SignInForm(): VNode {
  const [fault, setFault] = useState(linkFault.value);
  const enter = async ({ secret = "", admin = "", stay }: Fields): Promise<void> => {
    try {
      await signIn(secret, admin, stay !== undefined);
    } catch (error) {
      setFault(describe(error));
    }
  };
  return (
    <Form
      class="credentials"
      action={act("sign-in", "Sign in", enter, undefined, { look: "primary" })}
      fields={[
        { name: "secret", label: "Secret", type: "password", required: true },
        { name: "admin", label: "Administrator key (for deleting and for keys)", type: "password" },
        <Fault text={fault} />,
        <label class="check">
          <input type="checkbox" name="stay" /> Stay signed in on this device
        </label>,
      ]}
    >
      <Button label="Look without a secret" name="look" onClick={() => enter({})} />
    </Form>
  );
}

function SignIn(): VNode {
  useLayoutEffect(() => {
    document.title = `Sign in · ${hubName ?? location.host}`;
  }, []);
  return (
    <main class="sign-in">
      <h1>
        {hubName ?? "luxhub"} <small>{location.host}</small>
      </h1>
      <SignInForm />
      <p class="quiet">
        The hub keeps the secret and the key in the files secret and admin-key of its data directory. The open
        tabs of this hub keep them until the last is closed, unless you stay signed in.
      </p>
    </main>
  );
}

function App(): VNode {
  return (
    <>
      {session.value !== null ? <Frame /> : isReady.value && <SignIn />}
      <Notices />
      <BatchDialog />
    </>
  );
}

// ---- Keyboard

/** The first action on the selected rows, else of the page. */
const ACTION = "main .act button, main:not(:has(.act)) .buttons :is(button, .button)";

addEventListener("keydown", (event) => {
  const { target, key } = event;
  const isTyping = target instanceof Element && target.matches("input, textarea, select");
  if (isTyping && key === "Escape" && target instanceof HTMLElement) target.blur();
  if (
    isTyping ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    document.querySelector("dialog[open], .menu:popover-open")
  )
    return;
  if (key === "/" && session.value !== null) {
    event.preventDefault();
    isFindOpen.value = true;
  }
  if (key === "f") focusOn(event, document.querySelector<HTMLElement>('[role="search"] input'));
  if (key === "?" && session.value !== null) showHelp();
  if (key === "j" || key === "k") {
    const rows = [...document.querySelectorAll<HTMLElement>("a.row")];
    const current = rows.findIndex((row) => row === document.activeElement);
    focusOn(event, rows[current + (key === "j" || current === -1 ? 1 : -1)] ?? null);
  }
  if (key === "a") focusOn(event, document.querySelector<HTMLElement>(ACTION));
  if (key === "n") document.querySelector<HTMLElement>('main a[rel="next"]')?.click();
  const verdict = { p: "pass", r: "reject" }[key];
  if (verdict !== undefined)
    focusOn(event, document.querySelector<HTMLElement>(`main [data-do="${verdict}"]`));
  const number = /^[1-9]$/.test(key) ? Number(key) - 1 : -1;
  const choices = document.querySelectorAll<HTMLElement>("main .choices button");
  if (choices.length > 0) return focusOn(event, choices[number] ?? null);
  const view = openViews()[number];
  if (view && session.value !== null) location.hash = to(view[0]);
});

function focusOn(event: KeyboardEvent, element: HTMLElement | null): void {
  if (element === null) return;
  event.preventDefault();
  element.focus();
}

keepPlaces();
followPulse();
drawIcon();
const root = document.getElementById("app");
if (root) drawWith(() => render(<App />, root));
