"""The worker of the Python client against the hub of LUXHUB_URL, one scenario after the other, each with a node and a
task type of its own.
"""

import collections
import json
import logging.handlers
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import luxhub
from luxhub import FatalError, Handler, LuxHub, LuxHubError, Stop, Task, TaskContext, TaskResult, WorkerEvent

RESULT = {"problem": "p", "improvement": "i", "lesson": "l"}
HANG_S = 60

hub = LuxHub()


def until(is_so: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not happen"
        time.sleep(0.01)


class TestWorker:
    """A worker in a thread, and what it tells."""

    def __init__(
        self,
        node: str,
        handler: Handler,
        concurrency: int = 1,
        by: LuxHub | None = None,
        timeout: float | Literal["max_run_s"] | None = "max_run_s",
    ) -> None:
        self.events: list[WorkerEvent] = []
        self.stop = Stop()
        self.release = Stop()
        self.error: BaseException | None = None

        def run() -> None:
            try:
                (by or hub).worker(
                    node,
                    handler,
                    capabilities=[node],
                    concurrency=concurrency,
                    timeout=timeout,
                    stop=self.stop,
                    release=self.release,
                    on_event=self.events.append,
                )
            except LuxHubError as error:
                self.error = error
            finally:
                if by is not None:
                    by.close()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def heard(self, kind: str, times: int = 1) -> None:
        until(lambda: self.kinds().count(kind) >= times)

    def ended(self) -> None:
        self.thread.join(HANG_S)
        assert not self.thread.is_alive()

    def __enter__(self) -> "TestWorker":
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self.ended()


def create(node: str, title: str = "t", **fields: object) -> str:
    made = hub.call("task/create", {"title": title, "description": "d", "task_type": node, **fields})
    return str(made["task_id"])


def kinds_of(task_id: str) -> list[str]:
    events = hub.call("events", {"since": 0, "task_id": task_id, "limit": 1000})["events"]
    return [event["kind"] for event in events]


def get(task_id: str) -> Task:
    return hub.tasks.get(task_id)["task"]


def failures() -> None:
    """What is no JSON, and a message that no text can have."""
    no_json = create("throws", "no json", max_attempts=1)
    long = create("throws", "long", max_attempts=1)

    def handle(task: Task, _: TaskContext) -> TaskResult:
        if task["title"] == "no json":
            return {**RESULT, "output": {1, 2}}
        raise ValueError("\0\ud800" + "\U0001f600" * 4000)

    with TestWorker("throws", handle) as worker:
        worker.heard("failed", 2)
    for task_id, said in ((no_json, "set is no JSON"), (long, "\U0001f600")):
        failure = get(task_id)["failure"]
        assert get(task_id)["status"] == "failed" and failure is not None and said in str(failure["message"]), failure


def gives_anything() -> None:
    filled = {"problem": "t", "lesson": "none"}
    cases: list[tuple[object, dict[str, object]]] = [
        (None, {**filled, "improvement": "no output", "output": None}),
        (42, {**filled, "improvement": "42", "output": 42}),
    ]
    given = iter(cases)
    with TestWorker("gives", lambda task, context: next(given)[0]):
        for value, result in cases:
            task = hub.tasks.get(create("gives"), wait=HANG_S)["task"]
            assert task["result"] == result and task["attempts"] == 0, (value, task["result"])
    large: dict[str, object] = {"output": "x", "many": [1] * 40_000}
    with TestWorker("large", lambda task, context: large):
        task = hub.tasks.get(create("large"), wait=HANG_S)["task"]
        assert task["result"] is not None and task["files"] == [task["result"]["output_file"]], task
        with hub.files.download(task["files"][0]) as download:
            assert json.loads(download.read()).items() >= large.items()


def has_resources_and_types() -> None:
    untyped = hub.tasks.create("t", "d")["task_id"]
    needs = create("gpu-worker", requires={"resources": {"gpu": 1}})
    stop = Stop()
    worker = threading.Thread(
        target=lambda: hub.worker(
            "gpu-worker", lambda task, context: RESULT, capabilities="gpu-worker", resources={"gpu": 2}, stop=stop
        )
    )
    worker.start()
    assert hub.tasks.get(needs, wait=HANG_S)["task"]["status"] == "completed"
    stop.set()
    worker.join()
    assert get(untyped)["status"] == "open"
    hub.tasks.cancel(untyped)


def output_is_followed() -> None:
    task = create("chatty", backoff_s=0)
    attempts: list[int] = []

    def text(attempt: int) -> str:
        return "".join(f"attempt {attempt}, line {i} \u2713\n" for i in range(3000))

    def handle(_: Task, context: TaskContext) -> TaskResult:
        attempts.append(context.epoch)
        for line in text(len(attempts)).splitlines(keepends=True):
            context.output(line)
        context.output("\0\ud800")
        if len(attempts) == 1:
            raise ValueError("once more")
        return RESULT

    read: dict[int, str] = {}
    with TestWorker("chatty", handle) as worker:
        for part in hub.output(task, follow=True):
            assert part["attempt"] is not None
            assert part["dropped"] == 0, part
            read[part["attempt"]] = read.get(part["attempt"], "") + part["data"]
        worker.heard("completed")
    assert read == {epoch: text(n) + "\ufffd?" for n, epoch in enumerate(attempts, 1)}, {k: len(v) for k, v in read.items()}
    last = "".join(part["data"] for part in hub.output(task, from_=10))
    assert last == read[attempts[-1]][10:]


def output_never_waits() -> None:
    gate = threading.Event()
    sent: list[tuple[int, str]] = []

    def append(offset: int, data: str) -> int:
        assert gate.wait(HANG_S)
        sent.append((offset, data))
        return offset + len(data.encode())

    sender = luxhub._OutputSender(append, Stop())
    for i in range(50_000):
        sender.write(f"{i}\u2713".rjust(20))
    gate.set()
    sender.end()
    sender.write("too late")
    text = "".join(data for _, data in sent)
    assert text.endswith("49999\u2713"), text[-50:]
    assert "bytes of output were dropped" in text
    assert len(text) < 400_000
    assert max(len(data.encode()) for _, data in sent) <= 65_536
    ends = [offset + len(data.encode()) for offset, data in sent]
    assert [offset for offset, _ in sent] == [0, *ends[:-1]]

    def refuse(_: int, __: str) -> int:
        raise LuxHubError(429, "quota_exceeded", "no")

    refused = luxhub._OutputSender(refuse, Stop())
    refused.write("x")
    refused.end()


def usage_counts_once() -> None:
    costly = create("costly", max_cost_usd=1)
    seen: list[object] = []

    def handle(_: Task, context: TaskContext) -> TaskResult:
        seen.append(context.report_usage("large", 10, 1, cost_usd=0.25, cached_tokens=4))
        seen.append(context.report_usage("large", 10, 1))
        try:
            context.report_usage("large", -1, 1)
        except LuxHubError as error:
            seen.append(error.code)
        try:
            context.report_usage("large", 10, 1, cost_usd=1)
        except LuxHubError as error:
            seen.append(error.code)
        return RESULT

    with TestWorker("costly", handle) as worker:
        worker.heard("lost")
    assert seen == [0.75, 0.75, "invalid_request", "task_failed"], seen
    task = get(costly)
    assert task["status"] == "failed" and task["failure"] is not None and task["failure"]["kind"] == "budget", task
    usage = task["usage"]
    assert usage is not None and (usage["reports"], usage["without_cost"], usage["cost_usd"]) == (3, 1, 1.25), usage


def leases() -> None:
    by, calls = counting()
    lost: list[bool] = []

    def handle(task: Task, context: TaskContext) -> TaskResult:
        if task["title"] == "long":
            context.extend("begun")
            until(lambda: calls["task/extend"] > 2)  # twice without the handler
            return RESULT
        lost.append(context.stop.wait(HANG_S))
        return RESULT

    with TestWorker("leases", handle, by=by) as worker:
        long = create("leases", "long", timeout_s=600)
        worker.heard("completed")
        assert (get(long)["attempts"], get(long)["progress"]) == (0, "begun")
        assert "fault" not in worker.kinds(), worker.kinds()
        taken = create("leases", "taken", timeout_s=600)
        worker.heard("started", 2)
        hub.tasks.cancel(taken)
        worker.heard("lost")
        until(lambda: lost == [True])
        error = worker.events[-1].error
        assert isinstance(error, LuxHubError) and error.status == 409
    assert get(taken)["status"] == "failed"


def no_stream(node_id: str, **_: object) -> Iterator[luxhub.StreamItem]:
    raise LuxHubError(403, "forbidden", "Not here.")


def counting() -> tuple[LuxHub, collections.Counter[str]]:
    """
    A client that counts its calls. It is told that a lease of ten minutes is one of a second: it extends the lease often,
    and on no machine does the lease end before that.
    """
    by = LuxHub()
    ask = by.call
    calls: collections.Counter[str] = collections.Counter()

    def call(operation: str, fields: object = None, options: object = None) -> dict[str, Any]:
        calls[operation] += 1
        answer = ask(operation, fields, options)  # type: ignore[arg-type]
        task = answer.get("task") if operation == "task/next" else None
        if task is not None and task["timeout_s"] is not None:
            task["timeout_s"] = 1
        return answer

    setattr(by, "call", call)
    return by, calls


def cancelled() -> None:
    """A cancelled task is lost at once and is not extended again; the next one follows after the grace."""
    by, calls = counting()
    finish = threading.Event()

    def handle(task: Task, _: TaskContext) -> TaskResult:
        if task["title"] == "deaf":
            finish.wait(HANG_S)
        return RESULT

    usual, luxhub._GRACE_S = luxhub._GRACE_S, 1.5  # type: ignore[assignment]
    with TestWorker("cancelled", handle, by=by) as worker:
        deaf = create("cancelled", "deaf", timeout_s=600)
        create("cancelled", "next")
        worker.heard("started")
        hub.tasks.cancel(deaf)
        worker.heard("lost")  # the next heartbeat comes a minute later
        extended = calls["task/extend"]
        worker.heard("completed")
        assert calls["task/extend"] == extended and calls["node/heartbeat"] == 0, calls
        assert worker.kinds() == ["registered", "started", "lost", "started", "completed"], worker.kinds()
    finish.set()
    luxhub._GRACE_S = usual


def refused_stream() -> None:
    """A worker whose event stream is refused says so once, and asks now and then."""
    usual, luxhub._NO_STREAM_S = luxhub._NO_STREAM_S, 0.1  # type: ignore[assignment]
    by = LuxHub()
    setattr(by, "stream", no_stream)

    def handle(_: Task, context: TaskContext) -> TaskResult:
        assert context.stop.wait(HANG_S)
        raise ValueError("stopped")

    with TestWorker("unheard", handle, by=by) as worker:
        task_id = create("unheard")
        worker.heard("started")
        hub.tasks.cancel(task_id)
        worker.heard("lost")
        assert worker.kinds().count("fault") == 1
    luxhub._NO_STREAM_S = usual


def slow() -> None:
    """A handler that takes too long is a failed attempt, and the worker goes on."""
    finish = threading.Event()

    def handle(task: Task, context: TaskContext) -> TaskResult:
        if task["title"] == "hangs":
            finish.wait(HANG_S)
        if task["title"] == "late":
            assert context.stop.wait(HANG_S)
        return RESULT

    usual, luxhub._GRACE_S = luxhub._GRACE_S, 0.2  # type: ignore[assignment]
    tasks = [create("slow", title, max_attempts=1) for title in ("hangs", "late")]
    create("slow", "next", max_attempts=100, backoff_s=0)  # on a busy machine 0.2 s may pass before the thread runs
    with TestWorker("slow", handle, timeout=0.2) as worker:
        worker.heard("completed")
    for task_id in tasks:
        failure = get(task_id)["failure"]
        assert failure is not None and failure["kind"] == "failed", failure
        assert failure["message"] == "TimeoutError: The handler timed out after 0.2 s.", failure
    # Without a limit of the worker's own only the hub ends it.
    limited = create("slow", "hangs", max_run_s=1, max_attempts=1)
    with TestWorker("slow", handle, timeout=None) as worker:
        worker.heard("lost")
        failure = get(limited)["failure"]
        assert failure is not None and failure["kind"] == "timed_out", failure
    finish.set()
    luxhub._GRACE_S = usual


def heartbeats() -> None:
    """A heartbeat finds the loss of a task without a timeout."""
    impatient = LuxHub()
    ask = impatient.call

    def call(operation: str, fields: object = None, options: object = None) -> dict[str, Any]:
        answer = ask(operation, fields, options)  # type: ignore[arg-type]
        return {**answer, "heartbeat_interval": 0.1} if operation == "node/register" else answer

    setattr(impatient, "call", call)
    setattr(impatient, "stream", no_stream)

    def handle(_: Task, context: TaskContext) -> TaskResult:
        context.stop.wait(2 * HANG_S)
        raise ValueError("stopped")

    with TestWorker("beats", handle, by=impatient) as worker:
        task_id = create("beats")
        worker.heard("started")
        hub.tasks.revoke(task_id)
        worker.heard("lost")


def forgotten() -> None:
    """A heartbeat finds that a hub lacks the end of a task, as a copy may, and gives the task back."""
    forgetful = LuxHub()
    ask = forgetful.call
    is_forgotten = threading.Event()

    def call(operation: str, fields: object = None, options: object = None) -> dict[str, Any]:
        if operation == "task/complete" and not is_forgotten.is_set():
            is_forgotten.set()
            return {"lux_paid": 1}
        answer = ask(operation, fields, options)  # type: ignore[arg-type]
        return {**answer, "heartbeat_interval": 0.1} if operation == "node/register" else answer

    setattr(forgetful, "call", call)
    ended = threading.Event()

    def handle(task: Task, _: TaskContext) -> TaskResult:
        if task["title"] == "runs":
            ended.wait(HANG_S)
        return RESULT

    with TestWorker("forgotten", handle, 2, by=forgetful) as worker:
        running = create("forgotten", title="runs")
        worker.heard("started")
        task_id = create("forgotten")
        until(lambda: get(task_id)["status"] == "completed")
        assert is_forgotten.is_set() and "task.released" in kinds_of(task_id)
        ended.set()
        worker.heard("completed", 3)
        assert "task.released" not in kinds_of(running)


def full_disk() -> None:
    """A result survives a hub that cannot write it."""
    unlucky = LuxHub()
    ask = unlucky.call
    faults: list[LuxHubError] = []

    def call(operation: str, fields: object = None, options: object = None) -> dict[str, Any]:
        if operation == "task/complete" and not faults:
            faults.append(LuxHubError(507, "insufficient_storage", "The disk is full."))
            raise faults[0]
        return ask(operation, fields, options)  # type: ignore[arg-type]

    setattr(unlucky, "call", call)
    with TestWorker("disk", lambda task, context: RESULT, by=unlucky) as worker:
        task_id = create("disk")
        worker.heard("completed")
        assert [event.error for event in worker.events if event.kind == "fault"] == faults
    assert (get(task_id)["status"], get(task_id)["attempts"]) == ("completed", 0)


def late_completion() -> None:
    """A task that an earlier worker has just completed does not keep the others from being given back."""
    hub.nodes.register("late", "L", capabilities="late")
    begun = [create("late") for _ in range(4)]
    for task_id in begun:
        hub.tasks.claim(task_id, "late")
    unlucky = LuxHub()
    ask = unlucky.call
    completed: list[str] = []

    def call(operation: str, fields: Any = None, options: Any = None) -> dict[str, Any]:
        if operation == "task/release" and not completed:
            completed.append(fields["task_id"])
            hub.call("task/complete", {**fields, "result": RESULT})
        return ask(operation, fields, options)

    setattr(unlucky, "call", call)
    finish = threading.Event()

    def handle(_: Task, __: TaskContext) -> TaskResult:
        finish.wait(HANG_S)
        return RESULT

    with TestWorker("late", handle, by=unlucky) as worker:
        expected = ["assigned", "completed", "open", "open"]
        until(lambda: sorted(get(task_id)["status"] for task_id in begun) == expected)
        assert "fault" not in worker.kinds()
        finish.set()


def parks_with_its_usage() -> None:
    """Usage that cannot be sent at once is sent before a question gives the task back."""
    unlucky = LuxHub()
    ask = unlucky.call
    faults: list[LuxHubError] = []

    def call(operation: str, fields: Any = None, options: Any = None) -> dict[str, Any]:
        if operation == "task/extend" and len(faults) < 2:
            faults.append(LuxHubError(507, "insufficient_storage", "The disk is full."))
            raise faults[-1]
        return ask(operation, fields, options)

    setattr(unlucky, "call", call)

    def handle(_: Task, context: TaskContext) -> TaskResult:
        assert context.report_usage("m", 1, 2) is None
        context.ask("Which?", park=True)
        return RESULT

    with TestWorker("costs-and-parks", handle, by=unlucky) as worker:
        task_id = create("costs-and-parks")
        worker.heard("parked")
    used = get(task_id)["usage"]
    assert len(faults) == 2 and used is not None and used["reports"] == 1, used


def deaf_handler() -> None:
    """A handler that does not look at its stop does not keep the worker from giving its task back."""
    luxhub._GRACE_S = 0.2  # type: ignore[assignment]
    finish = threading.Event()

    def handle(_: Task, __: TaskContext) -> TaskResult:
        finish.wait(HANG_S)
        return RESULT

    task_id = create("deaf")
    with TestWorker("deaf", handle) as worker:
        worker.heard("started")
        worker.release.set()
        worker.ended()
        finish.set()
        assert worker.kinds() == ["registered", "started", "released", "left"], worker.events
    assert get(task_id)["status"] == "open"


def log() -> None:
    """Without on_event the log has the traceback of an error in the handler, and none of a failure on purpose."""
    kept = logging.handlers.BufferingHandler(100)
    logging.getLogger("luxhub").addHandler(kept)

    def handle(task: Task, _: TaskContext) -> TaskResult:
        raise KeyError("its place") if task["title"] == "wrong code" else FatalError("on purpose")

    stop = Stop()
    arguments = {"capabilities": ["log"], "stop": stop, "signals": False}
    thread = threading.Thread(target=hub.worker, args=("log", handle), kwargs=arguments, daemon=True)
    thread.start()
    tasks = [create("log", title, max_attempts=1) for title in ("wrong code", "fatal")]
    until(lambda: sum(record.levelno == logging.WARNING for record in kept.buffer) == len(tasks))
    stop.set()
    thread.join(HANG_S)
    logging.getLogger("luxhub").removeHandler(kept)
    wrong, fatal = (kept.format(r) for r in kept.buffer if r.levelno == logging.WARNING)
    assert 'raise KeyError("its place") if' in wrong and tasks[0] in wrong, wrong
    assert fatal == f"log failed task {tasks[1]}: on purpose", fatal


def refused() -> None:
    stranger = TestWorker("stranger", lambda task, context: RESULT, by=LuxHub(secret="wrong"))
    stranger.ended()
    assert isinstance(stranger.error, LuxHubError) and stranger.error.code == "unauthorized"


for scenario in (
    failures,
    gives_anything,
    has_resources_and_types,
    output_is_followed,
    output_never_waits,
    usage_counts_once,
    leases,
    cancelled,
    refused_stream,
    slow,
    heartbeats,
    forgotten,
    full_disk,
    late_completion,
    parks_with_its_usage,
    log,
    refused,
    deaf_handler,
):
    scenario()
    print(scenario.__name__, flush=True)
hub.close()
