"""A session over the whole Python client through a proxy that spoils requests. Everything must happen once, as if there
were no faults. LUXHUB_URL is the proxy; the argument is an empty directory.
"""

import io
import pathlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeVar

import luxhub
from luxhub import CallOptions, HubUnreachable, LuxHub, LuxHubError, Retry, Stop, StreamItem, WorkerEvent

T = TypeVar("T")
RESULT = {"problem": "p", "improvement": "i", "lesson": "l"}
QUICK = Retry(first_pause_s=0.005, max_pause_s=0.05)
HANG_S = 60
luxhub._RECONNECT_S = 0.05  # type: ignore[assignment]


def main(place: pathlib.Path) -> None:
    faults: list[Exception] = []
    hub = LuxHub(retry=QUICK, on_retry=lambda fault, _: faults.append(fault))
    end = Stop()
    until_end = CallOptions(stop=end, retry=Retry(float("inf"), 0.005, 0.05))

    # Followed from the beginning, and compared with the log at the end.
    followed: list[luxhub.Event] = []
    ended: list[luxhub.Event] = []
    streamed: list[StreamItem] = []
    grown = threading.Condition()

    def follow(items: Iterator[T], into: list[T]) -> threading.Thread:
        def run() -> None:
            for item in items:
                with grown:
                    into.append(item)
                    grown.notify_all()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    following = [
        follow(hub.events(since=0, options=until_end), followed),
        follow(hub.events(since=0, kinds=["task.completed", "task.failed"], options=until_end), ended),
    ]
    hub.nodes.register("w", "W", capabilities=["a", "b"])
    assert hub.nodes.get("w")["node"]["capabilities"] == "a,b"
    assert hub.nodes.heartbeat("w")["status"] == "online"
    cursor = hub.call("events", {"limit": 1})["cursor"]
    following.append(follow(hub.stream("w", last_event_id=cursor, options=until_end), streamed))

    # Each is done once, however often it was sent.
    tasks = [hub.tasks.create(f"t{i}", "d", lux_reward=1)["task_id"] for i in range(20)]
    assert hub.tasks.stats()["total"] == len(tasks)
    result = RESULT | {"n": 1}
    for task_id in tasks:
        lease = hub.tasks.claim(task_id, "w")["lease"]
        paid = hub.tasks.complete(task_id, "w", result, epoch=lease["epoch"])["lux_paid"]
        assert paid == 1
    assert hub.tasks.get(tasks[0])["task"]["result"] == result
    assert hub.nodes.get("w")["node"]["lux_balance"] == len(tasks)
    assert hub.lux.ledger("w", per_page=50)["total"] == len(tasks)
    assert hub.lux.sign_in("w")["lux_earned"] == 10
    answers = hub.batch(
        [
            {"path": "task/create", "body": {"title": "b", "description": "d"}},
            {"path": "task/claim", "body": {"task_id": "none", "node_id": "w"}},
        ]
    )
    assert [(one["status"], one["body"]["success"]) for one in answers] == [(200, True), (404, False)]
    batched = answers[0]["body"]["task_id"]

    print("cut", flush=True)  # the streams too break now

    # The other moves of a task.
    taken = hub.tasks.next("w", wait=1)["lease"]
    assert taken is not None
    assert hub.tasks.extend(batched, "w", epoch=taken["epoch"], note="half")["task"]["progress"] == "half"
    hub.tasks.release(batched, "w", reason="later")
    hub.tasks.assign(batched, "w")
    hub.tasks.revoke(batched)
    found = hub.tasks.batch_assign(assignments=[{"task_id": batched, "node_id": "w"}])["results"]
    assert found[0]["success"]
    hub.tasks.fail(batched, "w", "broken", retry=False)
    hub.tasks.retry(batched)
    assert [task["task_id"] for task in hub.tasks.pull("w", limit=5)["tasks"]] == [batched]
    hub.tasks.cancel(batched, reason="enough")
    assert [task["task_id"] for task in hub.tasks.list(status="failed", q="b")["tasks"]] == [batched]
    (row,) = hub.tasks.summaries(status="failed", order="updated")["tasks"][:1]
    assert row["task_id"] == batched and "description" not in row
    assert hub.tasks.count(failure_kind="cancelled", q="b")["count"] == 1

    # A worker takes what is created while it waits, and leaves when it is told to.
    stop = Stop()
    work: list[str] = []
    heard: list[WorkerEvent] = []

    def handle(task: luxhub.Task, _: luxhub.TaskContext) -> luxhub.TaskResult:
        work.append(task["task_id"])
        if len(work) == 5:
            stop.set()
        return RESULT

    worker = threading.Thread(
        target=lambda: hub.worker("worker", handle, concurrency=2, stop=stop, on_event=heard.append)
    )
    worker.start()
    given = [hub.tasks.create("w", "d")["task_id"] for _ in range(5)]
    worker.join(HANG_S)
    assert sorted(work) == sorted(given), (work, given, heard)
    assert {hub.tasks.get(task_id, wait=10)["task"]["status"] for task_id in given} == {"completed"}
    assert hub.nodes.get("worker")["node"]["status"] == "offline"
    hub.nodes.delete("worker")
    assert [node["node_id"] for node in hub.nodes.list()["nodes"]] == ["w"]
    assert hub.nodes.drain("w", True)["drain"] and not hub.nodes.drain("w", False)["drain"]

    # Messages: a receive waits through the faults, and none is taken twice or lost.
    received: list[str] = []

    def receive() -> None:
        while len(received) < 10:
            messages = hub.messages.receive("w", count=3, blocking=True, timeout=20)["messages"]
            received.extend(message["content"] for message in messages)

    receiver = threading.Thread(target=receive)
    receiver.start()
    for i in range(10):
        hub.messages.send("s", "w", f"m{i} Ünï")
    receiver.join(HANG_S)
    assert received == [f"m{i} Ünï" for i in range(10)], received
    sent = hub.messages.send("s", "w", "confirm", require_ack=True)["message_id"]
    assert hub.messages.receive("w")["messages"][0]["id"] == sent
    hub.messages.ack("w", sent)
    assert hub.messages.history("w", count=1)["messages"][0]["state"] == "acked"
    assert len(hub.messages.mailbox("w")["messages"]) == 11
    assert hub.messages.parked(node_id="w")["total"] == 0
    assert refusal(lambda: hub.messages.redrive("w", sent)).code == "message_not_parked"
    assert hub.messages.broadcast("s", "all")["receivers"] == ["w"]

    # Notes and leases.
    hub.notes.put("plan/a", "Ünï", node_id="w", if_version=0)
    conflict = refusal(lambda: hub.notes.put("plan/a", "x", if_version=0))
    assert (conflict.code, conflict.problem["version"]) == ("note_version_conflict", 1)
    assert hub.notes.get("plan/a")["note"]["text"] == "Ünï"
    assert hub.notes.list(prefix="plan/")["notes"][0]["version"] == 1
    assert hub.notes.search("ün")["notes"][0]["excerpt"] == "Ünï"
    hub.notes.delete("plan/a", if_version=1)
    fencing = hub.leases.acquire("src/**", "w", ttl_s=60)["lease"]["fencing"]
    assert hub.leases.renew("src/**", "w", fencing=fencing)["lease"]["fencing"] == fencing
    assert len(hub.leases.list(node_id="w")["leases"]) == 1
    assert hub.leases.release("src/**", "w", fencing=fencing)["released"] == 1

    # Files, from memory, from the disk, and in pieces that can be read once.
    text = "Ünï\r\n" * 100_000
    content = text.encode()
    path = place / 'a "b".txt'
    path.write_bytes(content)
    with path.open("rb") as opened:
        sources: list[str | bytes | pathlib.Path | BinaryIO] = [text, content, path, io.BytesIO(content), opened]
        for one in sources:
            about = {"task_id": tasks[0], "n": 1}
            file = hub.files.upload(one, name='a "b".txt', content_type="text/plain", metadata=about)
            assert (file["task_id"], file["name"], file["size"]) == (tasks[0], 'a "b".txt', len(content))
            with hub.files.download(file["file_id"]) as download:
                assert download.headers["Content-Type"] == "text/plain"
                assert b"".join(download) == content
            with hub.files.download(file["file_id"], range="bytes=0-2") as download:
                assert (download.status, download.read()) == (206, "Ün".encode())
            assert hub.files.download(file["file_id"]).save(place / "copy") == len(content)
            assert (place / "copy").read_bytes() == content
            hub.files.delete(file["file_id"])
    assert hub.files.upload(path)["name"] == 'a "b".txt'
    text_id = hub.files.upload(content, name="input.txt")["file_id"]
    reading = hub.tasks.create("Read it", "All of it", files=[text_id])
    assert (reading["task"]["inputs"], reading["task"]["outputs"]) == ([text_id], [])
    after = hub.tasks.create("Sum it up", "All of it", depends_on=[reading["task_id"]])["task_id"]
    unmet = {"count": 1, "task_ids": [reading["task_id"]]}
    assert hub.tasks.get(after)["task"]["unmet"] == unmet
    hub.tasks.cancel(reading["task_id"])
    again = hub.tasks.retry(reading["task_id"], with_dependents=True)
    assert again["dependents"] == {"opened": 1, "left": 0}
    hub.tasks.cancel(reading["task_id"])
    while True:
        pieces = (content[i : i + 1000] for i in range(0, len(content), 1000))
        try:
            assert hub.files.upload(pieces, name="pieces")["size"] == len(content)
            break
        except (HubUnreachable, LuxHubError) as error:
            assert luxhub._is_temporary(error), error  # it met a fault of the proxy, and can be read once
    assert hub.files.list()["files"][0]["name"] == "pieces"

    # Keys, and the hub itself. A key is made once: it is not repeated.
    names: list[str] = []
    while not names:
        try:
            made = hub.keys.add(f"laptop-{len(faults)}", role="viewer", node_id=None)
            assert made["secret"]
            names.append(made["name"])
        except (HubUnreachable, LuxHubError) as error:
            faults.append(error)
            assert luxhub._is_temporary(error), error
    assert names[0] in [key["name"] for key in hub.keys.list()["keys"]]
    assert hub.keys.revoke(names[0])["key"]["state"] == "revoked"
    while True:  # as with a key: the secret of a webhook is shown once
        try:
            put = hub.webhooks.put("ci", "http://receiver.invalid/", task_id="none")
            break
        except (HubUnreachable, LuxHubError) as error:
            assert luxhub._is_temporary(error), error
    assert [webhook["name"] for webhook in hub.webhooks.list()["webhooks"]] == [put["webhook"]["name"]] == ["ci"]
    hub.limits.set("api", running=2)
    assert [limit["key"] for limit in hub.limits.list()["limits"]] == ["api"]

    # Everything that is generated can be reached.
    reached = list(vars(hub).values())
    generated = luxhub._Resource.__subclasses__()
    assert [kind for kind in generated if not any(isinstance(one, kind) for one in reached)] == []
    assert hub.status()["status"] == "ok" and hub.minutes()["success"] and hub.diagnostic()["connected"]

    # Refusals are not repeated, and say what is wrong.
    unknown = refusal(lambda: hub.tasks.get("none"))
    assert (unknown.status, unknown.code, list(unknown.errors)) == (404, "task_not_found", [])
    assert "none" in unknown.detail and unknown.request_id
    wrong = refusal(lambda: hub.tasks.create("", ""))
    assert [one["path"] for one in wrong.errors] == ["title", "description"]
    key = CallOptions(idempotency_key="once")
    assert hub.tasks.create("k", "d", options=key) == hub.tasks.create("k", "d", options=key)
    hub.tasks.delete(hub.tasks.create("To delete", "d")["task_id"])

    # A field that an operation does not read is refused before it is sent.
    mistyped = {"title": "t", "description": "d", "depend_on": [], "requires": {"capabilties": ["a"]}}
    for call, before in (
        (lambda: hub.call("task/create", mistyped), ""),
        (lambda: hub.batch([{"path": "task/create", "body": mistyped}]), "requests.0.body."),
    ):
        refused = refusal(call)
        assert refused.code == "unknown_field" and "did you mean depends_on?" in refused.detail, refused
        places = [error["path"] for error in refused.errors]
        assert places == [f"{before}depend_on", f"{before}requires.capabilties"], places

    # A long wait is asked for in parts.
    asked_at = time.monotonic()
    with LuxHub(retry=QUICK, longest_ask_s=0.1) as patient:
        assert patient.tasks.next("w", wait=0.6, task_types=["none"])["task"] is None
    assert time.monotonic() - asked_at >= 0.6

    # A hub that says when to come back is not asked before.
    busy = LuxHubError(503, "overloaded", "Try again later.", retry_after_s=7)
    assert 7 < luxhub._pause_after(busy, 0, QUICK) < 7.1

    # A network fault that lasts.
    away = LuxHub("http://127.0.0.1:1", retry=Retry(0.02, 0.005, 0.05))
    try:
        away.status()
        raise AssertionError("a hub answered that is not there")
    except HubUnreachable as fault:
        assert isinstance(fault.__cause__, ConnectionRefusedError)

    # A download that breaks off is no whole file.
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_in_part, args=(server,), daemon=True).start()
        liar = LuxHub(f"http://127.0.0.1:{server.getsockname()[1]}")
        try:
            liar.files.download("f").save(place / "part")
            raise AssertionError("a part was taken for the whole")
        except HubUnreachable:
            assert not (place / "part").exists()

    # No event was missed, and none came twice.
    log = hub.call("events", {"since": 0, "limit": 1000})["events"]
    last = [event["id"] for event in log if event["kind"] == "task.deleted"][-1]
    kinds = ("task.completed", "task.failed")
    own = [
        event["id"]
        for event in log
        if event["id"] > cursor
        and (event["node_id"] == "w" and event["kind"].startswith("task.") or event["kind"] == "message.sent")
    ]
    with grown:
        assert grown.wait_for(lambda: bool(followed) and followed[-1]["id"] == last, HANG_S)
        assert grown.wait_for(lambda: len(streamed) >= len(own), HANG_S), (len(streamed), len(own))
    assert [event["id"] for event in followed] == [event["id"] for event in log]
    assert [event["id"] for event in ended] == [event["id"] for event in log if event["kind"] in kinds]
    assert [item.id for item in streamed] == own
    assert len([item for item in streamed if item.event == "message"]) == 12

    hub.nodes.leave("w")
    end.set()
    for thread in following:
        thread.join(HANG_S)
        assert not thread.is_alive()
    hub.close()
    assert any(isinstance(fault, HubUnreachable) for fault in faults)
    assert any(isinstance(fault, LuxHubError) and fault.status == 503 for fault in faults)


def answer_in_part(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(10_000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Disposition: attachment\r\nContent-Length: 1000\r\n\r\nThe first part")


def refusal(call: Callable[[], object]) -> LuxHubError:
    try:
        call()
    except LuxHubError as error:
        return error
    raise AssertionError("it was not refused")


main(pathlib.Path(sys.argv[1]))
