#!/usr/bin/env python3
"""A planner: makes a task for each part of a job and one that waits for all of them, and collects the results.
Needs Python 3.9 or later and no packages.

    HUB=http://127.0.0.1:19104 SECRET=$(cat luxhub-data/secret) python3 planner.py 'First part' 'Second part'

The hub hands the last task out when all parts are completed (`depends_on`); its worker finds their ids in the task. The
results are printed as a JSON list: those of the parts in order, then that of the last task. If a part fails,
the last task has failed too, and the exit status is 1.
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

HUB, SECRET = os.environ["HUB"], os.environ["SECRET"]


def hub(path, body=None):
    """Repeats a request until the hub has answered; a POST with a key, so that a repeat creates nothing twice."""
    headers = {"X-Matrix-Secret": SECRET, "Idempotency-Key": str(uuid.uuid4())}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{HUB}/api/v1/{path}", data, headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 429):
                sys.exit(f"{path}: {json.load(error)['detail']}")
        except (OSError, http.client.HTTPException):
            pass  # no answer: the hub or the network is away
        time.sleep(1)


def create(**fields):
    return hub("task/create", fields)["task_id"]


def ended(task_id):
    """The task, when it is completed or has failed."""
    while True:
        task = hub(f"task/{task_id}?wait=50")["task"]
        if task["status"] in ("completed", "failed"):
            return task


def main():
    parts = [create(title=f"Part {i}", description=text) for i, text in enumerate(sys.argv[1:], 1)]
    last = create(title="All parts", description="Join the results of the parts", depends_on=parts)
    whole = ended(last)
    tasks = [hub(f"task/{task_id}")["task"] for task_id in parts]
    if whole["status"] == "failed":
        for task in [*tasks, whole]:
            if task["status"] == "failed":
                print(f"{task['title']}: {task['failure']['kind']}: {task['failure']['message']}", file=sys.stderr)
        sys.exit(1)
    print(json.dumps([task["result"] for task in [*tasks, whole]], indent=2))


main()
