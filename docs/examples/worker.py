#!/usr/bin/env python3
"""A worker: does tasks, one at a time. Needs Python 3.9 or later and no packages.

    HUB=http://127.0.0.1:19104 SECRET=$(cat luxhub-data/secret) python3 worker.py worker-1

Write what it does into `work`. SIGTERM or Ctrl-C: the worker finishes its task, leaves the hub and ends.
Two workers of the same name would take tasks from each other: give each its own name.
"""

import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

HUB, SECRET = os.environ["HUB"], os.environ["SECRET"]
NODE = sys.argv[1]


def work(task, lost):
    """Does a task, and returns the result: three strings, and any other properties.

    An exception is a failed attempt. When `lost` is set, the task was cancelled or taken away: stop, the result is not
    needed.
    """
    words = len(task["description"].split())
    if words == 0 or "fail" in task["title"]:
        raise ValueError(f"cannot do {task['title']}")
    return {"problem": task["title"], "improvement": "Its words are counted", "lesson": "None", "words": words}


class Refused(Exception):
    """The hub's answer is an error that a repeat would not change."""


def hub(path, **body):
    """Repeats a request until the hub has answered."""
    data = json.dumps({"node_id": NODE, **body}).encode()
    request = urllib.request.Request(f"{HUB}/api/v1/{path}", data, {"X-Matrix-Secret": SECRET})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 429):
                raise Refused(f"{path}: {error.read().decode()}") from None
        except (OSError, http.client.HTTPException):
            pass  # no answer: the hub or the network is away
        time.sleep(1)


# How the lines begin after which a task may be lost: those of such events, and the first line of a stream.
LOST_KINDS = ("attempt_failed", "deleted", "failed", "released", "requeued", "revoked", "timed_out")
LOOK_AFTER = (b"retry:", *(f"event: task.{kind}".encode() for kind in LOST_KINDS))


def follow(look):
    """Sets `look` whenever a task of this worker may be lost: when its event stream begins, and after each such event."""
    url = f"{HUB}/api/v1/agent/sse?node_id={NODE}"
    request = urllib.request.Request(url, headers={"X-Matrix-Secret": SECRET})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as stream:  # the hub sends a comment every 15 s
                for line in stream:
                    if line.startswith(LOOK_AFTER):
                        look.set()
        except (OSError, http.client.HTTPException):
            pass  # until it is back, keep() looks at least every 30 s
        time.sleep(3)


def keep(held, timeout_s, look, ended, lost):
    """A heartbeat and an extend at least every 30 s, three times within the timeout of the task, and at each `look`."""
    while True:
        look.wait(min(30, (timeout_s or 90) / 3))
        look.clear()
        if ended.is_set():
            return
        try:
            hub("node/heartbeat")
            hub("task/extend", **held)
        except Refused as refusal:
            print(f"lost {held['task_id']}: {refusal}", file=sys.stderr)
            lost.set()
            return


def do(task, lease, look):
    held = {"task_id": task["task_id"], "epoch": lease["epoch"]}
    ended, lost = threading.Event(), threading.Event()
    keeper = threading.Thread(target=keep, args=(held, task["timeout_s"], look, ended, lost), daemon=True)
    keeper.start()
    try:
        result = work(task, lost)
        hub("task/complete", **held, result=result)
    except Exception as error:  # also what the hub would not accept as a result
        try:
            hub("task/fail", **held, error=f"{type(error).__name__}: {error}"[:1000])
        except Refused as refusal:
            print(f"dropped {held['task_id']}: {refusal}", file=sys.stderr)
    finally:
        ended.set()
        look.set()
        keeper.join()


def main():
    stopping = waiting = False

    def stop(*_):
        nonlocal stopping
        stopping = True
        if waiting:
            raise SystemExit  # hanging up while it waits loses no task

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    hub("node/register", name=NODE)
    look = threading.Event()
    threading.Thread(target=follow, args=(look,), daemon=True).start()
    try:
        while not stopping:
            # First what a run before this one has begun (resume), then the best open task; waits for one.
            waiting = True
            given = hub("task/next", wait=25, resume=True)
            waiting = False
            if given["task"]:
                do(given["task"], given["lease"], look)
            else:
                time.sleep(1)
    finally:
        waiting = False
        hub("node/leave")


try:
    main()
except Refused as refusal:
    sys.exit(str(refusal))
