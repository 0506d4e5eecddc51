"""The Python library as a worker of scenarios.ts: python scenario_worker.py NODE CONCURRENCY [TIMEOUT_S]."""

import json
import sys
import time
from typing import Any

import luxhub
from luxhub import FatalError, Retry, Task, TaskContext


def handle(task: Task, context: TaskContext) -> Any:
    runs = json.loads(task["description"])
    result: Any = "done"
    for step in runs[min(task["attempts"] + task["restarts"], len(runs) - 1)]:
        for i in range(step.get("prints", 0)):
            context.output(f"line {i} \u2713\n")
        if "note" in step:
            context.extend(step["note"])
        if "checkpoint" in step:
            context.save_checkpoint(step["checkpoint"])
        if "usage" in step:
            context.report_usage(**step["usage"])
        if "ask" in step:
            context.ask(step["ask"], choices=["a"], park=step.get("park", False))
        if "sleepMs" in step:
            time.sleep(step["sleepMs"] / 1000)
        if "hang" in step:
            context.stop.wait()
            raise luxhub.Stopped
        if "fail" in step:
            raise ValueError(step["fail"])
        if "fatal" in step:
            raise FatalError(step["fatal"])
        result = step.get("gives", result)
        if "large" in step:
            result = "\u00e9" * step["large"]
        if "see" in step:
            names = ("inputs", "checkpoint", "failures", "answers", "lessons")
            result = {"output": {name: getattr(context, name) for name in names}}
    return result


node, concurrency, *timeout = sys.argv[1:]
if timeout:
    luxhub._GRACE_S = 0.2  # type: ignore[assignment]
luxhub.LuxHub(retry=Retry(first_pause_s=0.005, max_pause_s=0.05)).worker(
    node,
    handle,
    capabilities=[node],
    concurrency=int(concurrency),
    timeout=float(timeout[0]) if timeout else "max_run_s",
    on_event=lambda event: print(event.kind, flush=True),
)
