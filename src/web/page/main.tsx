/** The dashboard's frame: sign-in, navigation, keyboard and theme; and the view for each address. */
import { Fragment, type JSX, type TargetedMouseEvent, h, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { BatchDialog } from "./batches.tsx";
import { countOf } from "./format.ts";
import { Find, isFindOpen } from "./find.tsx";
import { followAgain, liveFault } from "./live.ts";
import { NodePage, Nodes } from "./nodes.tsx";
import { Overview } from "./overview.tsx";
import { Button, Close, ConfirmDialog, Fault, Field, Form, Modal, NotLoaded, Notices } from "./parts.tsx";
import { keepPlaces } from "./places.ts";
import { drawIcon, followPulse, hubName, pausedWords, pulse } from "./pulse.ts";
import { route, subject, to } from "./route.ts";
import { Seldom, type SeldomViews } from "./seldom.tsx";
import {
  describe,
  expired,
  hasSecret,
  isAdmin,
  isOnline,
  isPutAway,
  isReady,
  mayAct,
  session,
  signIn,
  signOut,
} from "./session.ts";
import { drawWith, drawn } from "./shared.ts";
import { TaskPage } from "./task.tsx";
import { Tasks } from "./tasks.tsx";

type View = {
  readonly name: string;
  readonly title: string;
  readonly isOpen: () => boolean;
  readonly draw: (id: string) => JSX.Element;
};

const always = (): boolean => true;

const seldom = (draw: (views: SeldomViews, id: string) => JSX.Element) => (id: string) => (
  <Seldom draw={(views) => draw(views, id)} />
);

const VIEWS: readonly View[] = [
  { name: "overview", title: "Overview", isOpen: always, draw: () => <Overview /> },
  {
    name: "tasks",
    title: "Tasks",
    isOpen: always,
    draw: (id) => (id === "" ? <Tasks /> : <TaskPage key={id} id={id} />),
  },
  {
    name: "nodes",
    title: "Nodes",
    isOpen: always,
    draw: (id) => (id === "" ? <Nodes /> : <NodePage key={id} id={id} />),
  },
  {
    name: "questions",
    title: "Questions",
    isOpen: hasSecret,
    draw: seldom((views) => <views.Questions />),
  },
  {
    name: "groups",
    title: "Groups",
    isOpen: always,
    draw: seldom((views, id) => (id === "" ? <views.Groups /> : <views.GroupPage key={id} id={id} />)),
  },
  {
    name: "schedules",
    title: "Schedules",
    isOpen: hasSecret,
    draw: seldom((views) => <views.Schedules />),
  },
  {
    name: "messages",
    title: "Messages",
    isOpen: mayAct,
    draw: seldom((views) => <views.Messages />),
  },
  { name: "files", title: "Files", isOpen: always, draw: seldom((views) => <views.Files />) },
  { name: "lux", title: "LUX", isOpen: always, draw: seldom((views) => <views.Lux />) },
  {
    name: "cost",
    title: "Cost",
    isOpen: hasSecret,
    draw: seldom((views) => <views.Costs />),
  },
  {
    name: "events",
    title: "Events",
    isOpen: always,
    draw: seldom((views) => <views.Events />),
  },
  {
    name: "control",
    title: "Control",
    isOpen: isAdmin,
    draw: seldom((views) => <views.Control />),
  },
  {
    name: "keys",
    title: "Keys",
    isOpen: isAdmin,
    draw: seldom((views) => <views.Keys />),
  },
];

function Content(): JSX.Element {
  const { view, id } = route.value;
  if (view === "new" && mayAct()) return <Seldom draw={(views) => <views.NewTask from={id} key={id} />} />;
  const found = VIEWS.find(({ name, isOpen }) => name === view && isOpen());
  return (
    found?.draw(id) ?? (
      <NotLoaded
        title="No such page"
        error="This page does not exist, or your key cannot open it."
        back={[to("overview"), "To the overview"]}
      />
    )
  );
}

const isHelpOpen = drawn(false);

function Frame(): JSX.Element {
  const { view, id } = route.value;
  const views = VIEWS.filter(({ isOpen }) => isOpen());
  const word = views.find(({ name }) => name === view)?.title ?? (view === "new" ? "New task" : "Not found");
  const { failed } = pulse.value;
  const alarm = failed > 0 ? `● ${countOf(failed)} failed · ` : "";
  const title = `${alarm}${subject.value || (id && `${word}: ${id}`) || word} · ${pulse.value.name ?? "luxhub"}`;
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => {
    // In a narrow window the navigation is longer than the window.
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [view]);
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        To the content
      </a>
      <header class="bar">
        <a class="brand" href={to("overview")}>
          <span class="mark" /> {pulse.value.name ?? "luxhub"}
        </a>
        <nav aria-label="Pages of the dashboard">
          {views.map(({ name, title: word }) => (
            <a key={name} href={to(name)} aria-current={name === view ? "page" : undefined}>
              {word}
              <Count name={name} />
            </a>
          ))}
        </nav>
        <div class="tools">
          <Bounds />
          <Button data-do="find" title="Find (/)" onClick={() => (isFindOpen.value = true)}>
            Find
          </Button>
          <a href="docs">Manual</a>
          <Button
            aria-label="Keyboard and help"
            title="Keyboard (?)"
            onClick={() => (isHelpOpen.value = true)}
          >
            ?
          </Button>
          <Theme />
          <Button data-do="sign-out" onClick={() => signOut()}>
            {session.value?.role === "none" ? "Sign in" : "Sign out"}
          </Button>
        </div>
      </header>
      {!isOnline.value && (
        <p class="offline" role="alert">
          The hub cannot be reached. Trying again.
        </p>
      )}
      {pulse.value.pauses.length > 0 && (
        <p class="paused" role="status">
          <b>Paused:</b> {pulse.value.pauses.map(pausedWords).join(", ")}.{" "}
          {isAdmin() && <a href={to("control")}>Show the pauses</a>}
        </p>
      )}
      {expired.value !== "" && isPutAway.value && (
        <p class="offline" role="alert">
          {expired.value}{" "}
          <Button data-do="sign-in-again" onClick={() => (isPutAway.value = false)}>
            Sign in
          </Button>
        </p>
      )}
      {expired.value === "" && liveFault.value !== "" && (
        <p class="offline" role="alert">
          The page is no longer live. {liveFault.value}{" "}
          <Button data-do="follow" onClick={followAgain}>
            Follow again
          </Button>
        </p>
      )}
      <main id="content" tabIndex={-1} data-view={id === "" ? view : `${view}/${id}`}>
        <Content />
      </main>
      {isHelpOpen.value && <Help />}
      {isFindOpen.value && <Find pages={views.map((one) => [one.name, one.title])} />}
      {expired.value !== "" && !isPutAway.value && (
        <Modal title={expired.value} onClose={() => (isPutAway.value = true)}>
          <p>Sign in again. What you have written on this page stays.</p>
          <SignInForm />
        </Modal>
      )}
    </>
  );
}

/** What waits for somebody on a page of the navigation. */
function Count({ name }: { name: string }): JSX.Element | null {
  const { deadLetters, questions, reviews } = pulse.value;
  const [count, what] =
    name === "messages"
      ? [deadLetters, "dead letters"]
      : name === "questions"
        ? [(questions ?? 0) + (reviews ?? 0), "open questions and results in review"]
        : [null, ""];
  return count ? (
    <span class="count" title={`${countOf(count)} ${what}`}>
      {countOf(count)}
    </span>
  ) : null;
}

/** What the key cannot do, so that nobody looks for the buttons. */
function Bounds(): JSX.Element | null {
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

function Help(): JSX.Element {
  return (
    <Modal title="Keyboard" onClose={() => (isHelpOpen.value = false)}>
      <dl class="facts">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>find anything: a task, node, file, group, page</dd>
        <dt>
          <kbd>f</kbd>
        </dt>
        <dd>the filters of a list</dd>
        <dt>
          <kbd>j</kbd> <kbd>k</kbd>
        </dt>
        <dd>next and previous row; Enter opens it</dd>
        <dt>
          <kbd>x</kbd>
        </dt>
        <dd>select the row, with Shift all up to it</dd>
        <dt>
          <kbd>n</kbd>
        </dt>
        <dd>the next page of a list</dd>
        <dt>
          <kbd>1</kbd> to <kbd>9</kbd>
        </dt>
        <dd>the pages, in their order</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>this help</dd>
      </dl>
      <p>
        The hub serves its <a href="docs">manual</a> and an <a href="docs/api-reference">API reference</a>.
      </p>
      <Close word="Close" />
    </Modal>
  );
}

// ---- Theme

const THEME = "luxhub.theme";
const theme = drawn(localStorage.getItem(THEME) ?? "");

function Theme(): JSX.Element {
  const isDark =
    theme.value === "dark" || (theme.value === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  }, [theme.value]);
  return (
    <Button
      data-do="theme"
      aria-label={isDark ? "Light colours" : "Dark colours"}
      title={isDark ? "Light colours" : "Dark colours"}
      onClick={() => {
        theme.value = isDark ? "light" : "dark";
        localStorage.setItem(THEME, theme.value);
      }}
    >
      {isDark ? "☀" : "☾"}
    </Button>
  );
}

// ---- Sign-in

function SignInForm(): JSX.Element {
  const [fault, setFault] = useState("");
  const enter = async (secret: string, adminKey: string, stays: boolean): Promise<void> => {
    try {
      await signIn(secret, adminKey, stays);
    } catch (error) {
      setFault(describe(error));
    }
  };
  return (
    <Form
      class="credentials"
      onSend={({ secret = "", admin = "", stay }) => enter(secret, admin, stay !== undefined)}
    >
      <Field label="Secret" name="secret" type="password" required />
      <Field label="Administrator key (for deleting and for keys)" name="admin" type="password" />
      <Fault text={fault} />
      <label class="check">
        <input type="checkbox" name="stay" /> Stay signed in on this device
      </label>
      <p class="buttons">
        <button type="submit" class="primary" data-do="sign-in">
          Sign in
        </button>
        <Button data-do="look" onClick={() => enter("", "", false)}>
          Look without a secret
        </Button>
      </p>
    </Form>
  );
}

function SignIn(): JSX.Element {
  useEffect(() => {
    document.title = `Sign in · ${hubName ?? location.host}`;
  }, []);
  return (
    <main class="sign-in">
      <h1>
        {hubName ?? "luxhub"} <small>{location.host}</small>
      </h1>
      <SignInForm />
      <p class="quiet">
        The hub keeps the secret and the key in the files secret and admin-key of its data directory. Here
        they stay in the open tabs of this hub, and are forgotten with the last one, unless you stay signed
        in.
      </p>
    </main>
  );
}

function App(): JSX.Element {
  return (
    <>
      {session.value !== null ? <Frame /> : isReady.value && <SignIn />}
      <Notices />
      <ConfirmDialog />
      <BatchDialog />
    </>
  );
}

// ---- Keyboard

addEventListener("keydown", (event) => {
  const { target, key } = event;
  const isTyping = target instanceof Element && target.matches("input, textarea, select");
  if (isTyping && key === "Escape" && target instanceof HTMLElement) target.blur();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
    return;
  if (key === "/" && session.value !== null) {
    event.preventDefault();
    isFindOpen.value = true;
  }
  if (key === "f") focusOn(event, document.querySelector<HTMLElement>('[role="search"] input'));
  if (key === "?" && session.value !== null) isHelpOpen.value = true;
  if (key === "j" || key === "k") {
    const rows = [...document.querySelectorAll<HTMLElement>("a.row")];
    const at = rows.findIndex((row) => row === document.activeElement);
    focusOn(event, rows[at + (key === "j" ? 1 : at === -1 ? 1 : -1)] ?? null);
  }
  if (key === "n") document.querySelector<HTMLElement>('main a[rel="next"]')?.click();
  const view = /^[1-9]$/.test(key) ? VIEWS.filter(({ isOpen }) => isOpen())[Number(key) - 1] : undefined;
  if (view && session.value !== null) location.hash = to(view.name);
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
