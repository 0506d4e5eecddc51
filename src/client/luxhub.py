"""The Python client of a hub: one file without dependencies, for Python 3.11 and later.

A hub serves this file at /client/luxhub.py. Calls are retried after network faults and overload, and take effect
once: they carry an Idempotency-Key, or a repeat is harmless.

>>> hub = LuxHub()  # url and secret from LUXHUB_URL and LUXHUB_SECRET
>>> hub.nodes.register("laptop", "Laptop")["status"]
'online'
>>> created = hub.tasks.create("Say hello", "To everyone", priority="high")
>>> hub.tasks.get(created["task_id"])["task"]["title"]
'Say hello'

A worker is a function of a task:

>>> def greet(task, context):
...     context.extend("halfway")
...     return {"problem": task["title"], "improvement": "Said hello", "lesson": "Say it first"}
>>> stop = Stop()
>>> hub.worker("worker-1", greet, stop=stop, on_event=lambda event: event.kind == "completed" and stop.set())
>>> hub.tasks.get(created["task_id"], wait=10)["task"]["status"]
'completed'

The parameters of a method are the fields of its endpoint. A method returns the JSON object of the response, typed as
a TypedDict that has the fields of both variants.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import http.client
import io
import json
import logging
import os
import queue
import random
import re
import secrets
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Dict, Literal, NotRequired, Protocol, TypedDict, TypeVar, Union, cast
from urllib.parse import quote, urlencode, urlsplit

_T = TypeVar("_T")
_LOG = logging.getLogger("luxhub")


# ---- Errors


class LuxHubError(Exception):
    """The hub, or a proxy before it, refused the request.

    >>> try:
    ...     LuxHub().tasks.claim("no-such-task", "laptop")
    ... except LuxHubError as error:
    ...     print(error.status, error.code)
    404 task_not_found
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        errors: Sequence[FieldError] = (),
        request_id: str | None = None,
        retry_after_s: float | None = None,
        problem: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(status, code, detail, errors, request_id, retry_after_s, problem)
        self.status = status
        #: A stable code, see ErrorCode; `http_STATUS` when the response did not come from a hub.
        self.code = code
        #: A sentence that says what to do.
        self.detail = detail
        #: The invalid fields of a 400.
        self.errors = errors
        #: All members of the problem, such as `holders` of `lease_conflict`; empty if it did not come from a hub.
        self.problem: Mapping[str, object] = problem or {}
        #: The hub's log has the request under this id.
        self.request_id = request_id
        #: The hub's Retry-After in seconds; None without one.
        self.retry_after_s = retry_after_s

    @property
    def is_foreign(self) -> bool:
        """Whether something between the client and the hub has answered, such as a proxy."""
        return self.code == "not_a_hub" or self.code.startswith("http_")

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.detail}"


class FieldError(TypedDict):
    """An invalid field of a request: its dotted path, and what to send instead."""

    path: str
    message: str


class HubUnreachable(Exception):
    """A network fault (`__cause__`): no response, or only a part of one. The hub may have carried out the request."""


class Stopped(Exception):
    """A call ended because its Stop was set."""


class FatalError(Exception):
    """Raised by a handler when nobody can do the task: it fails permanently, without a retry."""


# ---- Options


class Stop(threading.Event):
    """A threading.Event that, set from another thread, also ends the calls and pauses to which it was passed.

    Do not set it in a signal handler, which may interrupt the thread that waits for it.

    >>> stop = Stop()
    >>> threading.Timer(0.01, stop.set).start()
    >>> LuxHub().messages.receive("laptop", blocking=True, timeout=3600, options=CallOptions(stop=stop))
    Traceback (most recent call last):
    luxhub.Stopped
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], object]] = {}

    def set(self) -> None:
        super().set()
        with self._lock:
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Calls `callback` once when it is set, at once if it is already. Returns a function that unsubscribes."""
        token = object()
        with self._lock:
            is_set = self.is_set()
            if not is_set:
                self._callbacks[token] = callback
        if is_set:
            callback()
        return lambda: self._callbacks.pop(token, None)


@dataclasses.dataclass(frozen=True)
class Retry:
    """How long a call is retried after a network fault or a temporary refusal, and with which pauses.

    Temporary are 408, 429, 502, 503, 504 and `outcome_unknown`. When the client has reached the hub before, so is any
    response that is not from a hub. The pause is never shorter than Retry-After.
    """

    #: How long to retry, in seconds from the first fault; 0: never, math.inf: until the Stop.
    for_s: float = 60
    #: The first pause. Each further one is twice as long, with jitter.
    first_pause_s: float = 0.2
    max_pause_s: float = 10


@dataclasses.dataclass(frozen=True)
class CallOptions:
    """The options of every call."""

    #: Ends the call with Stopped, even in a pause.
    stop: Stop | None = None
    #: Replaces the client's policy for this call.
    retry: Retry | None = None
    #: By default a new one for each call. Give one to be able to repeat a call after a restart of your program.
    idempotency_key: str | None = None


_FOREVER = float("inf")


# ---- HTTP: one request with its retries (exponential backoff with jitter, Retry-After)

_CONNECT_S = 10
#: How long a hub may take to show that it is there, when there is another one.
_PROBE_S = 3
#: How often a hub at which calls wait is probed, when there is another one, and how often in a row it may not respond.
_WATCH_EVERY_S = 5
_SILENT_PROBES_MAX = 2
#: A copy says in it how old its data is.
_COPY_HEADER = "LuxHub-Lag"
#: The codes with which a hub turns writes away that another hub accepts.
_ELSEWHERE = ("standby", "superseded")
#: How long the hub may be silent, in addition to the wait that the request asks for.
_SILENCE_S = 30
#: An idle connection is kept for less time than the hub and most proxies keep it.
_IDLE_S = 4
_CHUNK = 256 * 1024

_Body = Union[bytes, Iterable[bytes], None]


@dataclasses.dataclass(frozen=True)
class _Request:
    method: str
    #: From /api/v1/ on, with the query.
    path: str
    headers: Mapping[str, str]
    #: Makes the body for each attempt.
    body: Callable[[], _Body] = lambda: None
    #: Whether the request may be sent again after a fault.
    is_repeatable: bool = True
    silence_s: float = _SILENCE_S
    #: The body is read after send() has returned.
    is_streamed: bool = False


class _SourceFault(Exception):
    """The content of an upload could not be read. It is an OSError, as a fault of the network is."""


class _Connection:
    """A connection that another thread may cut."""

    def __init__(self, url: str, connection: http.client.HTTPConnection) -> None:
        self.url = url
        self._http = connection
        #: Kept here, because http.client drops its socket when an answer is the last of the connection.
        self._socket: socket.socket | None = None
        self._is_cut = False
        self.idle_since = 0.0

    def send(self, request: _Request, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        if self._socket is None:
            self._http.connect()
            self._socket = cast(socket.socket, self._http.sock)
        if self._is_cut:
            raise ConnectionAbortedError("stopped")
        self._socket.settimeout(request.silence_s)
        body = request.body()
        try:
            is_chunked = headers.get("Transfer-Encoding") == "chunked"
            self._http.request(request.method, request.path, body, headers, encode_chunked=is_chunked)
        except ConnectionError as fault:
            # The hub may refuse a body before it has read all of it.
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self._http.getresponse()
            raise fault
        return self._http.getresponse()

    def cut(self) -> None:
        """Ends a read or write of another thread."""
        self._is_cut = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # Not the TLS socket's own method, which is not safe in another thread.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        self._http.close()


class _Answer:
    """An answer whose body is read as it arrives. Read errors become HubUnreachable."""

    def __init__(
        self,
        response: http.client.HTTPResponse,
        connection: _Connection,
        stop: Stop | None,
        give_back: Callable[[_Connection, bool], None],
    ) -> None:
        self.status = response.status
        self.reason = response.reason
        self.headers = response.headers
        self._response = response
        self._left = response.length
        self._stop = stop
        self._forget = stop.on_set(connection.cut) if stop is not None else lambda: None
        self._connection = connection
        self._give_back = give_back
        self._is_open = True

    def read(self, size: int = -1) -> bytes:
        chunk = self._guarded(lambda: self._response.read(None if size < 0 else size))
        if self._left is not None:
            self._left -= len(chunk)
            # http.client does not report a body that ends early.
            if self._left > 0 and size != 0 and (size < 0 or chunk == b""):
                raise HubUnreachable(f"the answer broke off {self._left} bytes before its end")
        return chunk

    def read_line(self) -> bytes:
        return self._guarded(self._response.readline)

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._forget()
        is_whole = self._response.isclosed() and not self._left  # http.client closes one that ends early too
        is_reusable = is_whole and not self._response.will_close
        self._response.close()
        self._give_back(self._connection, is_reusable)

    def _guarded(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except (OSError, http.client.HTTPException, ValueError) as fault:
            if self._stop is not None and self._stop.is_set():
                raise Stopped from None
            raise HubUnreachable(f"the answer broke off: {_text_of(fault)}") from fault


class _Hubs:
    """The URLs of a hub and of its copies, of which one accepts writes. All calls go to the current one.

    A URL that only a response names is never plain HTTP when the current one has TLS.
    """

    def __init__(self, listed: str) -> None:
        #: What the user has given, what the last registration or heartbeat has named, and where a hub has sent a call.
        self._given = [url.strip().rstrip("/") for url in listed.split(",")]
        self._named: list[str] = []
        self._pointed: list[str] = []
        for url in self._given:
            if not _is_url(url):
                raise ValueError(f"the URL of a hub is like http://127.0.0.1:19104, not {url}")
        self.current = self._given[0]

    @property
    def urls(self) -> list[str]:
        """All, first the current one."""
        return list(dict.fromkeys([self.current, *self._pointed, *self._named, *self._given]))

    def learn(self, urls: Iterable[object]) -> None:
        self._named = self._trusted(urls)

    def leave(self, left: str, tried: set[str], pointed: object = None) -> bool:
        """Makes another hub the current one that the call has not tried. False: it has tried all."""
        instead = self._trusted([pointed])
        if instead:
            self._pointed = instead
        following = [url for url in [*instead, *self.urls] if url != left and url not in tried]
        if following:
            self.current = following[0]
        return bool(following)

    def _trusted(self, urls: Iterable[object]) -> list[str]:
        is_secure = self.current.startswith("https:")
        return [
            url.rstrip("/")
            for url in urls
            if isinstance(url, str) and _is_url(url) and (url.startswith("https:") or not is_secure)
        ]


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and parts.hostname is not None and parts.port != 0
    except ValueError:
        return False


class _Http:
    def __init__(
        self,
        url: str,
        secret: str | None,
        admin_key: str | None,
        retry: Retry,
        on_retry: Callable[[Exception, float], object] | None,
        on_hubs: Callable[[list[str]], object] | None,
        context: ssl.SSLContext | None,
    ) -> None:
        self._hubs = _Hubs(url)
        #: As on_hubs has them.
        self._told = self._hubs.urls
        #: The hubs that have responded since they last did not.
        self._reached: set[str] = set()
        #: What waits for a response that the hub may take long to send, with its URL.
        self._waiting: dict[_Connection, str] = {}
        #: Ends the thread that probes these hubs; None: no call waits, or there is no other hub.
        self._watch: threading.Event | None = None
        self._context = context
        self._headers = {"User-Agent": "luxhub-python"}
        if secret:
            self._headers["X-Matrix-Secret"] = secret
        if admin_key:
            self._headers["X-Admin-Key"] = admin_key
        self._retry = retry
        self._on_retry = on_retry
        self._on_hubs = on_hubs
        #: A hub has responded. From then on, a foreign response hides the hub, for example while a proxy restarts.
        self._is_hub_known = False
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self._hubs.current

    def learn_hubs(self, urls: Iterable[object]) -> None:
        """Learns the hubs that a response names."""
        with self._lock:
            self._hubs.learn(urls)
        self._tell_hubs()

    def send(self, request: _Request, read: Callable[[_Answer], _T], options: CallOptions) -> _T:
        """Sends a request until it is answered. `read`, or the owner of its result, must close the answer.

        A hub that turns the request away, or cannot be reached, sends it on to the next one that is known, without a
        pause; after the last there is one.
        """
        policy = options.retry if options.retry is not None else self._retry
        tried: set[str] = set()
        #: A copy may lack what another hub has: its response counts only if no other hub responds.
        of_copies: list[tuple[str, Callable[[], _T]]] = []
        give_up_at: float | None = None
        attempt = 0
        while True:
            url = self._hubs.current
            tried.add(url)
            seen: list[_Answer] = []
            try:
                answer = self._attempt(url, request, read, options.stop, seen)
                is_copy = _is_of_copy(seen)
                if is_copy and not request.is_streamed and self._leave(url, tried):
                    of_copies.append((url, _giving(answer)))
                    continue
                self._is_hub_known = True
                if not is_copy:
                    self._settle(url)
                return answer
            except (LuxHubError, HubUnreachable) as error:
                may_pass = _is_temporary(error, self._is_hub_known)
                if may_pass and _is_away(error):
                    is_other = self._leave(url, tried, _pointed_by(error))
                    if is_other and ((request.is_repeatable and policy.for_s > 0) or _is_not_taken(error)):
                        continue
                    if of_copies:
                        self._hubs.current, give = of_copies[0]
                        return give()
                elif _is_of_copy(seen) and not request.is_streamed and self._leave(url, tried):
                    of_copies.append((url, _raising(error)))
                    continue
                pause = _pause_after(error, attempt, policy)
                attempt += 1
                now = time.monotonic()
                if give_up_at is None:
                    give_up_at = now + policy.for_s
                if not request.is_repeatable or not may_pass or now + pause > give_up_at:
                    raise
                if self._on_retry is not None:
                    self._on_retry(error, pause)
            _sleep(pause, options.stop)
            tried.clear()

    def _leave(self, url: str, tried: set[str], pointed: object = None) -> bool:
        with self._lock:
            return self._hubs.leave(url, tried, pointed)

    def _settle(self, url: str) -> None:
        """The hub has done what it was asked. Unless another call has left it meanwhile, no call waits elsewhere."""
        with self._lock:
            if self._hubs.current != url:
                return
            waiting = [connection for connection, at in self._waiting.items() if at != url]
        for connection in waiting:
            connection.cut()  # a machine that has died does not end its connections
        self._tell_hubs()

    def _start_watch(self) -> None:
        """A machine that has died, or is cut off, does not end the calls that wait at it."""
        with self._lock:
            if self._watch is not None or not self._waiting:
                return
            ended = self._watch = threading.Event()
        _thread("watch", self._watch_waiting, ended)

    def _watch_waiting(self, ended: threading.Event) -> None:
        silent: dict[str, int] = {}
        while not ended.wait(_WATCH_EVERY_S):
            with self._lock:
                urls = set(self._waiting.values())
            for url in urls:
                try:
                    self._probe(url)
                    silent[url] = 0
                except HubUnreachable:
                    silent[url] = silent.get(url, 0) + 1
                if silent[url] < _SILENT_PROBES_MAX:
                    continue
                with self._lock:
                    waiting = [connection for connection, at in self._waiting.items() if at == url]
                for connection in waiting:
                    connection.cut()

    def _tell_hubs(self) -> None:
        with self._lock:
            urls = self._hubs.urls
            is_new, self._told = urls != self._told, urls
        if is_new and self._on_hubs is not None:
            self._on_hubs(urls)

    def _attempt(
        self,
        url: str,
        request: _Request,
        read: Callable[[_Answer], _T],
        stop: Stop | None,
        seen: list[_Answer],
    ) -> _T:
        if stop is not None and stop.is_set():
            raise Stopped
        if len(self._hubs.urls) > 1 and url not in self._reached:
            self._probe(url)
        connection = self._take(url, request)
        forget = stop.on_set(connection.cut) if stop is not None else lambda: None
        if request.is_repeatable and request.silence_s > _SILENCE_S:
            with self._lock:
                self._waiting[connection] = url
            if len(self._hubs.urls) > 1:
                self._start_watch()
        try:
            sent = {**self._headers, **request.headers}
            prefixed = dataclasses.replace(request, path=urlsplit(url).path + request.path)
            response = connection.send(prefixed, sent)
        except _SourceFault as fault:
            connection.close()
            raise cast(BaseException, fault.__cause__)
        except (OSError, http.client.HTTPException) as fault:
            connection.close()
            self._reached.discard(url)
            if stop is not None and stop.is_set():
                raise Stopped from None
            raise HubUnreachable(f"{request.method} {url}{request.path}: {_text_of(fault)}") from fault
        except BaseException:
            connection.close()
            raise
        finally:
            forget()
            with self._lock:
                self._waiting.pop(connection, None)
                if not self._waiting and self._watch is not None:
                    self._watch.set()
                    self._watch = None
        self._reached.add(url)
        answer = _Answer(response, connection, stop, self._give_back)
        seen.append(answer)
        try:
            if not 200 <= response.status <= 299:
                raise _refusal_of(answer)
            return read(answer)
        except BaseException:
            answer.close()
            raise

    def _probe(self, url: str) -> None:
        """Any response will do. Raises HubUnreachable soon, also when the machine of the hub is off."""
        made = self._connection_to(url, _PROBE_S)
        try:
            made.request("GET", f"{urlsplit(url).path}/healthz")
            made.getresponse()
        except (OSError, http.client.HTTPException) as fault:
            raise HubUnreachable(f"GET {url}/healthz: {_text_of(fault)}") from fault
        finally:
            made.close()

    def _take(self, url: str, request: _Request) -> _Connection:
        """Reuses an idle connection only for a request that may be repeated: it may break when it is used again."""
        while request.is_repeatable:
            with self._lock:
                connection = next((one for one in reversed(self._idle) if one.url == url), None)
                if connection is None:
                    break
                self._idle.remove(connection)
            if time.monotonic() - connection.idle_since < _IDLE_S:
                return connection
            connection.close()
        return _Connection(url, self._connection_to(url, _CONNECT_S))

    def _connection_to(self, url: str, timeout_s: float) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        host = cast(str, parts.hostname)
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, parts.port, timeout=timeout_s)
        if self._context is None:
            self._context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout_s, context=self._context)

    def _give_back(self, connection: _Connection, is_reusable: bool) -> None:
        if not is_reusable:
            connection.close()
            return
        now = connection.idle_since = time.monotonic()
        with self._lock:
            old = [one for one in self._idle if now - one.idle_since >= _IDLE_S]
            self._idle = [one for one in self._idle if now - one.idle_since < _IDLE_S] + [connection]
        for one in old:
            one.close()

    def close(self) -> None:
        with self._lock:
            old, self._idle = self._idle, []
        for one in old:
            one.close()


def _read_json(answer: _Answer) -> dict[str, Any]:
    value = _parse_object(answer.read())
    status = answer.status
    answer.close()
    if value is None or not (value.get("success") is True or "openapi" in value):
        raise _not_a_hub(status, "is not a JSON object of a hub")
    return value


def _read_file(answer: _Answer) -> Download:
    if not answer.headers.get("Content-Disposition", "").startswith("attachment"):
        raise _not_a_hub(answer.status, "is not a file of a hub")
    return Download(answer)


def _event_stream(answer: _Answer) -> _Answer:
    if not answer.headers.get("Content-Type", "").startswith("text/event-stream"):
        raise _not_a_hub(answer.status, "is not an event stream of a hub")
    return answer


def _not_a_hub(status: int, fault: str) -> LuxHubError:
    """The error of a success that a hub does not return."""
    return LuxHubError(status, "not_a_hub", f"The response {fault}: check that the URL is that of a hub.")


def _refusal_of(answer: _Answer) -> LuxHubError:
    body = _parse_object(answer.read()) or {}
    code, detail, errors = body.get("error", ""), body.get("detail"), body.get("errors")
    is_of_hub = body.get("success") is False and isinstance(code, str) and code != ""
    plain = f"The response was {answer.status} {answer.reason}".rstrip()
    try:
        retry_after_s = float(answer.headers.get("Retry-After", ""))
    except ValueError:
        retry_after_s = None
    return LuxHubError(
        answer.status,
        code if is_of_hub else f"http_{answer.status}",
        detail if is_of_hub and isinstance(detail, str) else f"{plain}, and not from a hub.",
        cast("list[FieldError]", errors) if isinstance(errors, list) else (),
        answer.headers.get("X-Request-Id"),
        retry_after_s,
        body,
    )


def _parse_object(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _is_temporary(error: BaseException, is_hub_known: bool = True) -> bool:
    """Whether the same request may succeed later. After `outcome_unknown` a repeat returns the outcome.

    When the URL is known to be a hub's, a foreign response hides the hub for a moment.
    """
    if isinstance(error, LuxHubError):
        if error.status in (408, 429, 502, 503, 504) or error.code == "outcome_unknown":
            return True
        return error.is_foreign and is_hub_known
    return isinstance(error, HubUnreachable) and not isinstance(error.__cause__, ssl.SSLCertVerificationError)


def _is_away(error: LuxHubError | HubUnreachable) -> bool:
    """Whether another hub may do it: this one is not there, something answers in its place, or it is a copy."""
    if isinstance(error, HubUnreachable):
        return True
    return error.is_foreign or error.status in (502, 504) or error.code in _ELSEWHERE


def _is_not_taken(error: LuxHubError | HubUnreachable) -> bool:
    """Whether the hub has certainly not carried the request out."""
    if isinstance(error, HubUnreachable):
        return isinstance(error.__cause__, ConnectionRefusedError)
    return error.code in _ELSEWHERE


def _pointed_by(error: LuxHubError | HubUnreachable) -> object:
    """The URL of the hub that accepts writes, if this one has named it."""
    is_elsewhere = isinstance(error, LuxHubError) and error.code in _ELSEWHERE
    return error.problem.get("hub") if isinstance(error, LuxHubError) and is_elsewhere else None


def _is_of_copy(seen: Sequence[_Answer]) -> bool:
    return any(_COPY_HEADER in answer.headers for answer in seen)


def _giving(answer: _T) -> Callable[[], _T]:
    return lambda: answer


def _raising(error: Exception) -> Callable[[], Any]:
    def give() -> Any:
        raise error

    return give


def _pause_after(error: Exception, attempt: int, policy: Retry) -> float:
    """Returns the pause before the next attempt: exponential backoff with jitter, after Retry-After."""
    backoff = min(policy.max_pause_s, policy.first_pause_s * 2.0 ** min(attempt, 60))
    asked = (error.retry_after_s or 0) if isinstance(error, LuxHubError) else 0
    return asked + backoff * (0.5 + random.random() / 2)


def _sleep(seconds: float, stop: Stop | None) -> None:
    """Raises Stopped when the Stop ends it."""
    if stop is None:
        time.sleep(seconds)
    elif stop.wait(seconds):
        raise Stopped


def _text_of(fault: BaseException) -> str:
    return str(fault) or type(fault).__name__


# ---- Files

#: The bytes of a file: text, bytes, the path of a file, an open binary file, or an iterable of bytes.
#: An iterable, and a file that cannot seek, can be read only once: such an upload is not retried after a fault.
FileContent = Union[str, bytes, bytearray, memoryview, "os.PathLike[str]", BinaryIO, Iterable[bytes]]


class Download:
    """The bytes of a file, as they arrive. Use it in a `with` statement, or read it to its end.

    >>> hub = LuxHub()
    >>> file = hub.files.upload("Hello, everyone.", name="hello.txt", content_type="text/plain")
    >>> with hub.files.download(file["file_id"]) as download:
    ...     download.read()
    b'Hello, everyone.'
    """

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        #: For example `Content-Length`, `Content-Type`, `ETag`.
        self.headers = answer.headers
        #: 206 when a range was asked for.
        self.status = answer.status

    def read(self, size: int = -1) -> bytes:
        """Returns at most `size` bytes, by default all that are left; empty at the end. Raises HubUnreachable."""
        chunk = self._answer.read(size)
        if size < 0 or (chunk == b"" and size != 0):
            self.close()
        return chunk

    def save(self, path: str | os.PathLike[str]) -> int:
        """Writes the remaining bytes into a file, and returns how many. An incomplete file is removed."""
        size = 0
        try:
            with self, open(path, "wb") as file:
                for chunk in self:
                    size += file.write(chunk)
        except (HubUnreachable, Stopped):
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        return size

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read(_CHUNK):
            yield chunk

    def close(self) -> None:
        self._answer.close()

    def __enter__(self) -> Download:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Source:
    """The content of an upload. `size` is None if it is unknown before the content is read."""

    def __init__(self, content: FileContent) -> None:
        self.size: int | None = None
        self.is_repeatable = True
        self.name: str | None = None
        if isinstance(content, str):
            content = content.encode()
        if isinstance(content, (bytes, bytearray, memoryview)):
            kept = bytes(content)
            self.size = len(kept)
            self._open: Callable[[], Iterator[bytes]] = lambda: iter([kept])
        elif isinstance(content, os.PathLike):
            path = os.fspath(content)
            self.name = os.path.basename(path)
            self.size = os.stat(path).st_size
            self._open = lambda: self._of_path(path)
        elif hasattr(content, "read"):
            self._of_open_file(cast(BinaryIO, content))
        else:
            pieces = content
            self.is_repeatable = False
            self._open = lambda: iter(pieces)

    def chunks(self) -> Iterator[bytes]:
        size = 0
        try:
            for chunk in self._open():
                size += len(chunk)
                yield chunk
            if self.size is not None and size != self.size:
                raise OSError(f"the file had {self.size} bytes, and has {size} now")
        except OSError as fault:
            raise _SourceFault from fault

    def _of_open_file(self, file: BinaryIO) -> None:
        self.is_repeatable = file.seekable()
        if self.is_repeatable:
            start = file.tell()
            self.size = file.seek(0, io.SEEK_END) - start
            self._open = lambda: self._of_file(file, start)
        else:
            self._open = lambda: iter(lambda: file.read(_CHUNK), b"")

    @staticmethod
    def _of_path(path: str) -> Iterator[bytes]:
        with open(path, "rb") as file:
            yield from iter(lambda: file.read(_CHUNK), b"")

    @staticmethod
    def _of_file(file: BinaryIO, start: int) -> Iterator[bytes]:
        file.seek(start)
        yield from iter(lambda: file.read(_CHUNK), b"")


class _Resource:
    """The endpoints of a resource."""

    def __init__(self, call: _Call) -> None:
        self._call = call


class _FileTransfer(_Resource):
    """Upload and download: the endpoints whose request or response is not JSON."""

    def __init__(self, call: _Call, http: _Http) -> None:
        super().__init__(call)
        self._http = http

    def upload(
        self,
        content: FileContent,
        *,
        name: str | None = None,
        content_type: str = "application/octet-stream",
        metadata: Mapping[str, Any] | None = None,
        options: CallOptions | None = None,
    ) -> FileRecord:
        """Uploads a file in pieces, as multipart form data (RFC 7578).

        content: Text, bytes, the path of a file, an open file, or an iterable of bytes.
        name: The name of the file; by default that of the path.
        metadata: Stored with the file; `task_id` and `node` in it attach the file to a task and a node.
        """
        source = _Source(content)
        named = name if name is not None else source.name
        if named is None:
            raise ValueError("say which name the file has: name=")
        if re.search(r"[\r\n]", content_type):
            raise ValueError("a content type is one line")
        boundary = f"luxhub-{secrets.token_hex(16)}"
        escaped = re.sub(r'["\r\n]', lambda found: quote(found[0]), named)
        head = "\r\n".join(
            [
                f"--{boundary}",
                'Content-Disposition: form-data; name="metadata"',
                "",
                json.dumps(metadata or {}, allow_nan=False),
                f"--{boundary}",
                f'Content-Disposition: form-data; name="file"; filename="{escaped}"',
                f"Content-Type: {content_type}",
                "",
                "",
            ]
        ).encode()
        tail = f"\r\n--{boundary}--\r\n".encode()

        def body() -> Iterator[bytes]:
            yield head
            yield from source.chunks()
            yield tail

        chosen = options or CallOptions()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        headers.update(_key_header("file/upload", chosen))
        if source.size is None:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(len(head) + source.size + len(tail))
        path = "/api/v1/file/upload"
        request = _Request("POST", path, headers, body, source.is_repeatable, _UPLOAD_SILENCE_S)
        return cast("FileRecord", self._http.send(request, _read_json, chosen))

    def download(
        self, file_id: str, *, range: str | None = None, options: CallOptions | None = None
    ) -> Download:
        """Returns the bytes of a file, as they arrive. `range` as in HTTP, for example `bytes=0-1023`."""
        headers = {} if range is None else {"Range": range}
        path = f"/api/v1/file/download/{quote(file_id, safe='')}"
        request = _Request("GET", path, headers, is_streamed=True)
        return self._http.send(request, _read_file, options or CallOptions())


#: The hub flushes an upload to disk before it answers.
_UPLOAD_SILENCE_S = 300


# ---- The hub

#: Takes a value away where leaving it out would keep it: `hub.tasks.update(task_id, not_before=CLEAR)`.
CLEAR: Any = object()


def _joined_file(file: str | os.PathLike[str] | None) -> str:
    path = file or os.environ.get("LUXHUB_JOINED")
    if path is None:
        home = os.environ.get("XDG_CONFIG_HOME", "")
        config = home if os.path.isabs(home) else os.path.expanduser("~/.config")
        path = os.path.join(config, "luxhub", "hub.json")
    return os.fspath(path)


def _joined_in(file: str | os.PathLike[str] | None) -> dict[str, Any]:
    with open(_joined_file(file), encoding="utf-8") as stored:
        hub = cast("dict[str, Any]", json.load(stored))
    return hub


def _remember_hubs(hub: Mapping[str, Any], urls: list[str], file: str) -> None:
    """Keeps the URLs of a hub and of its copies for the next program, which may start while the first of them is down.

    Does nothing when the file is of another join by now, or cannot be written: it may be for reading only.
    """
    partial = f"{file}.{os.getpid()}.hubs"
    with contextlib.suppress(OSError, ValueError):
        known = _joined_in(file)
        if known.get("secret") != hub["secret"] or known.get("hubs") == urls:
            return
        with open(partial, "w", encoding="utf-8", opener=_only_for_owner) as stored:
            stored.write(json.dumps({**known, "hubs": urls}, indent=2) + "\n")
        os.replace(partial, file)


def _only_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def joined_node(file: str | os.PathLike[str] | None = None) -> str:
    """Returns the node as which this machine has joined a hub: the only one that its key acts for."""
    return str(_joined_in(file)["node_id"])


class LuxHub:
    """A hub. Each method takes the fields of the endpoint of the same name, and returns the response.

    Threads may share it. `url`, `secret` and `admin_key` are by default LUXHUB_URL, LUXHUB_SECRET and
    LUXHUB_ADMIN_KEY of the environment.

    url: The URL of the hub, or those of the hub and of its copies, separated by commas: the calls go to the one that
        accepts writes.
    retry: The policy of all calls.
    on_retry: Called before each retry with the fault and the pause in seconds, for a log.
    on_hubs: Called when the known URLs of the hub and of its copies change, or their order: the first is the one in use.
    context: Checks the certificate of a hub with TLS; by default with the system's authorities.
    longest_ask_s: Splits a longer wait into calls of this many seconds, because most proxies cut a connection
        that is silent for a minute. The hub accepts at most 300.
    """

    def __init__(
        self,
        url: str | None = None,
        secret: str | None = None,
        *,
        admin_key: str | None = None,
        retry: Retry = Retry(),
        on_retry: Callable[[Exception, float], object] | None = None,
        on_hubs: Callable[[list[str]], object] | None = None,
        context: ssl.SSLContext | None = None,
        longest_ask_s: float = 50,
    ) -> None:
        self._http = _Http(
            url or os.environ.get("LUXHUB_URL") or "http://127.0.0.1:19104",
            secret if secret is not None else os.environ.get("LUXHUB_SECRET"),
            admin_key if admin_key is not None else os.environ.get("LUXHUB_ADMIN_KEY"),
            retry,
            on_retry,
            on_hubs,
            context,
        )
        self._longest_ask_s = longest_ask_s
        self.nodes = Nodes(self.call)
        self.tasks = Tasks(self.call)
        self.messages = Messages(self.call)
        self.notes = Notes(self.call)
        self.leases = Leases(self.call)
        self.lux = Lux(self.call)
        self.files = Files(self.call, self._http)
        self.limits = Limits(self.call)
        self.costs = Costs(self.call)
        self.groups = Groups(self.call)
        self.schedules = Schedules(self.call)
        self.webhooks = Webhooks(self.call)
        self.keys = Keys(self.call)
        self.invitations = Invitations(self.call)

    @classmethod
    def joined(
        cls,
        file: str | os.PathLike[str] | None = None,
        *,
        retry: Retry = Retry(),
        on_retry: Callable[[Exception, float], object] | None = None,
    ) -> LuxHub:
        """Returns the hub that this machine has joined (`luxhub join`), with its key; see also `joined_node`.

        Its connections trust the hub's own authority and nothing else.

        file: By default that of LUXHUB_JOINED, or luxhub/hub.json in the directory of configuration.
        """
        hub = _joined_in(file)
        context = None
        if hub.get("ca"):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False  # whoever has a certificate of the hub's authority is the hub
            context.load_verify_locations(cadata=hub["ca"])
        urls = dict.fromkeys([*hub.get("hubs", ()), hub["url"]])
        path = _joined_file(file)
        return cls(
            ",".join(urls),
            hub["secret"],
            retry=retry,
            on_retry=on_retry,
            on_hubs=lambda known: _remember_hubs(hub, known, path),
            context=context,
        )

    @property
    def url(self) -> str:
        """The URL to which the calls go: of several the one that accepts writes, as far as is known."""
        return self._http.url

    def close(self) -> None:
        """Closes the idle connections."""
        self._http.close()

    def __enter__(self) -> LuxHub:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def status(self, options: CallOptions | None = None) -> StatusAnswer:
        """Returns the health of the hub, and counts."""
        return cast("StatusAnswer", self.call("status", options=options))

    def minutes(self, *, last: int | None = None, options: CallOptions | None = None) -> StatsMinutesAnswer:
        """Returns what was done in the last minutes, and how long tasks took.

        last: How many minutes, including the current one; by default 60.
        """
        return cast("StatsMinutesAnswer", self.call("stats/minutes", {"last": last}, options))

    def diagnostic(self, options: CallOptions | None = None) -> PgDiagnosticAnswer:
        """Returns the state of the hub's store."""
        return cast("PgDiagnosticAnswer", self.call("pg/diagnostic", options=options))

    def batch(
        self, requests: Sequence[BatchRequest], options: CallOptions | None = None
    ) -> list[BatchedAnswer]:
        """Runs the requests in order, in one transaction. An error does not stop the others: check each response.

        Requests for which a batch has no room follow in another one, which is a transaction of its own.

        >>> answers = LuxHub().batch([
        ...     {"path": "task/create", "body": {"title": "One", "description": "Of two"}},
        ...     {"path": "task/claim", "body": {"task_id": "none", "node_id": "laptop"}},
        ... ])
        >>> [answer["status"] for answer in answers]
        [200, 404]
        """
        chosen = options or CallOptions()
        key = chosen.idempotency_key
        answers: dict[int, BatchedAnswer] = {}
        rest = list(range(len(requests)))
        left = len(rest) + 1
        while 0 < len(rest) < left:
            if answers and key is not None:
                chosen = dataclasses.replace(chosen, idempotency_key=f"{key}-{left}")
            left = len(rest)
            answer = cast(
                "BatchAnswer", self.call("batch", {"requests": [requests[at] for at in rest]}, chosen)
            )
            answers.update(zip(rest, answer["answers"]))
            rest = [at for at in rest if answers[at]["body"].get("error") == "batch_full"]
        return [answers[at] for at in range(len(requests))]

    def call(
        self, operation: str, fields: Mapping[str, Any] | None = None, options: CallOptions | None = None
    ) -> dict[str, Any]:
        """Calls any operation that takes and returns JSON, by its path without `/api/v1/`: see METHODS.

        None in an optional field is the same as leaving it out.

        >>> LuxHub().call("task/list", {"status": "open", "per_page": 1})["page"]
        1
        """
        given = {name: value for name, value in (fields or {}).items() if value is not None}
        chosen = options or CallOptions()
        if operation == "task/ask":
            return self._ask_question(given, chosen)
        is_taking = operation == "message/receive" and given.get("blocking") is not True
        field, unasked, is_empty = _WAITS.get(operation, ("wait", 0, None))
        asked = given.get(field, unasked)
        whole = float(asked) if isinstance(asked, (int, float)) and not is_taking else 0.0
        if is_empty is None or whole <= 0:
            return self._ask(operation, given, whole, chosen)
        until = time.monotonic() + whole
        while True:
            asked_at = time.monotonic()
            seconds = max(0.0, min(self._longest_ask_s, until - asked_at))
            answer = self._ask(operation, {**given, field: round(seconds, 3)}, seconds, chosen)
            now = time.monotonic()
            is_early = now - asked_at < seconds - _EARLY_S
            if is_early or now >= until or not is_empty(answer):
                return answer

    def _ask_question(self, fields: Mapping[str, Any], options: CallOptions) -> dict[str, Any]:
        """Asks once, and then waits for the answer to this question: after an answer the same one would be new."""
        until = time.monotonic() + float(fields.get("wait") or 0)
        seconds = max(0.0, min(self._longest_ask_s, until - time.monotonic()))
        answer = self._ask("task/ask", {**fields, "wait": round(seconds, 3)}, seconds, options)
        while answer["question"]["state"] == "open":
            seconds = min(self._longest_ask_s, until - time.monotonic())
            if seconds <= 0:
                break
            asked_at = time.monotonic()
            read = {
                "task_id": answer["question"]["task_id"],
                "question_id": answer["question"]["question_id"],
                "wait": round(seconds, 3),
            }
            try:
                page = self._ask("task/{task_id}/questions", read, seconds, CallOptions(stop=options.stop))
                answer = {**answer, "question": page["questions"][0]}
            except LuxHubError as error:
                if error.code != "question_not_found":
                    raise
                # A copy took over without it.
                answer = self._ask("task/ask", {**fields, "wait": round(seconds, 3)}, seconds, options)
            is_at_once = time.monotonic() - asked_at < _EARLY_S  # the wait is almost over, or the hub stops
            if is_at_once and answer["question"]["state"] == "open":
                _sleep(_EARLY_S, options.stop)
        return answer

    def events(
        self,
        since: int | None = None,
        *,
        kinds: Sequence[EventKind] = (),
        task_id: str | None = None,
        node_id: str | None = None,
        group: str | None = None,
        tag: str | None = None,
        options: CallOptions | None = None,
    ) -> Iterator[Event]:
        """Yields the events of the hub's log, from now or from `since` on, as they arrive, until its Stop is set.

        No event is missed or repeated, despite faults and restarts of the hub.

        since: The id of the last event that you have seen; 0: from the oldest that is stored. None: from now on.

        >>> hub = LuxHub()
        >>> created = hub.tasks.create("Watched", "By its creator")
        >>> for event in hub.events(since=0, task_id=created["task_id"]):
        ...     print(event["kind"])
        ...     break
        task.created
        """
        return _read_log(self.call, since, kinds, task_id, node_id, group, tag, _for_ever(options))

    def output(
        self,
        task_id: str,
        *,
        attempt: int | None = None,
        from_: int | None = None,
        follow: bool = False,
        options: CallOptions | None = None,
    ) -> Iterator[TaskGetOutputAnswer]:
        """Yields the output of a task part by part; with `follow` also what comes, until the task is finished.

        A restart of the hub loses and repeats nothing.

        attempt: The attempt to read, or to begin with. By default the newest that has output.
        from_: The offset to begin at, in bytes.
        """
        return _read_output(self.call, task_id, attempt, from_, follow, options)

    def stream(
        self, node_id: str, *, last_event_id: int | None = None, options: CallOptions | None = None
    ) -> Iterator[StreamItem]:
        """Yields a node's messages and the events of its tasks as they arrive (Server-Sent Events).

        Ends when its Stop is set. Resumes after faults; after a restart of your program pass `last_event_id`.

        last_event_id: The `id` of the last item that you have seen. By default from now on.
        """
        return _read_stream(self._http, self.call, node_id, last_event_id, _for_ever(options))

    def worker(
        self,
        node_id: str,
        handler: Handler,
        *,
        name: str | None = None,
        capabilities: str | Sequence[str] | None = None,
        resources: Mapping[str, float] | None = None,
        task_types: Sequence[str] | None = None,
        untyped: bool = False,
        concurrency: int = 1,
        stop: Stop | None = None,
        release: Stop | None = None,
        timeout: float | Literal["max_run_s"] | None = "max_run_s",
        signals: bool = True,
        on_event: Callable[[WorkerEvent], object] | None = None,
    ) -> None:
        """Registers a node and does its tasks until the worker is stopped.

        name: The display name of the node; by default its id.
        capabilities: The task types that the node takes; by default all.
        resources: What the node has, such as {"gpu": 2, "vram_gib": 24}: tasks may require some of it.
        task_types: Takes only open tasks of these types; by default those of `capabilities`.
        untyped: With `capabilities`: also takes open tasks without a type.
        concurrency: How many tasks it does at once, each in a thread of its own.
        stop: Stops the worker in order: it takes no more tasks, finishes those it has, and leaves the hub.
        release: Stops it now: it stops its handlers, gives their tasks back, and leaves the hub.
        timeout: How many seconds a handler may take; then its stop is set and the attempt fails. By default the
            `max_run_s` of its task, if it has one. None: without a limit of the worker's own.
        signals: In the main thread SIGTERM and SIGINT set `stop`, and a second one sets `release`. False: not handled.
        on_event: Called with each event of the worker, in any thread; by default the logger "luxhub".

        Raises LuxHubError when the hub refuses the worker, for a wrong secret for example.
        """
        worker = _Worker(
            self.call,
            self.stream,
            self.files.upload,
            node_id,
            handler,
            {"name": name or node_id, "capabilities": capabilities, "resources": resources},
            _types_of(capabilities) if task_types is None and not untyped else task_types,
            concurrency,
            timeout,
            on_event or _log_worker,
        )
        worker.run(stop or Stop(), release or Stop(), signals)

    def _ask(
        self, operation: str, fields: dict[str, Any], wait_s: float, options: CallOptions
    ) -> dict[str, Any]:
        method = METHODS.get(operation)
        if method is None:
            raise ValueError(f"there is no operation {operation}")
        _refuse_unknown(operation, fields)
        left = dict(fields)
        path = re.sub(r"\{(\w+)\}", lambda found: quote(str(left.pop(found[1])), safe=""), operation)
        silence_s = _SILENCE_S + wait_s
        if method == "POST":
            headers = {"Content-Type": "application/json", **_key_header(operation, options)}
            body = json.dumps(left, allow_nan=False, default=_plain).encode()
            is_repeatable = operation not in _NOT_REPEATABLE
            request = _Request(method, f"/api/v1/{path}", headers, lambda: body, is_repeatable, silence_s)
        else:
            query = urlencode({name: _query_text(value) for name, value in left.items()})
            # The name of an operation may have a query of its own.
            joint = "&" if "?" in path else "?"
            asked = f"/api/v1/{path}{joint}{query}" if query else f"/api/v1/{path}"
            request = _Request(method, asked, {}, silence_s=silence_s)
        answer = self._http.send(request, _read_json, options)
        if isinstance(answer.get("hubs"), list):
            self._http.learn_hubs(answer["hubs"])
        return answer


def _types_of(capabilities: str | Sequence[str] | None) -> Sequence[str] | None:
    """The types of open tasks that a worker takes: an untyped task matches none of them. None: all."""
    words = capabilities.split(",") if isinstance(capabilities, str) else capabilities or ()
    return [word.strip() for word in words if word.strip()] or None


#: The hub does not store a response with a secret: it would refuse a repeat, and the secret would be lost.
_NOT_REPEATABLE = ("key/add", "invitation/create", "webhook/put")
#: Harmless to repeat: a heartbeat is frequent, so the hub need not store the responses, output has its offset, the hub
#: does not store a response with a ticket, and who joins has no key yet.
_NEEDS_NO_KEY = ("node/heartbeat", "task/output", "file/download-url", "file/upload-url", "join")
#: An empty response that arrives this much too early ends the wait: the node leaves or drains, or the hub stops.
_EARLY_S = 0.5


def _key_header(operation: str, options: CallOptions) -> dict[str, str]:
    if operation in _NOT_REPEATABLE or operation in _NEEDS_NO_KEY:
        return {}
    return {"Idempotency-Key": options.idempotency_key or secrets.token_hex(16)}


def _refuse_unknown(operation: str, request: Mapping[str, Any]) -> None:
    """Raises LuxHubError 400 `unknown_field` for the fields that the operation does not read: they would vanish."""
    errors = _unknown_in(request, FIELDS[operation], "")
    if operation == "batch":
        for i, one in enumerate(request.get("requests", ())):
            shape = FIELDS.get(one.get("path", ""), 0)
            errors += _unknown_in(one.get("body"), shape, f"requests.{i}.body.")
    if errors:
        first = errors[0]
        detail = f"{operation} has no field {first['path']}{first['message']}"
        raise LuxHubError(400, "unknown_field", detail, errors)


def _unknown_in(value: object, shape: Any, before: str) -> list[FieldError]:
    if shape == 0:
        return []
    if isinstance(value, Mapping):
        errors: list[FieldError] = []
        for name, part in value.items():
            if name in shape:
                errors += _unknown_in(part, shape[name], f"{before}{name}.")
            elif part is not None:
                near = difflib.get_close_matches(str(name), shape, 1)
                message = f": did you mean {near[0]}?" if near else f": it must be {', '.join(shape)}"
                errors.append({"path": f"{before}{name}", "message": message})
        return errors
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [error for i, one in enumerate(value) for error in _unknown_in(one, shape, f"{before}{i}.")]
    return []


def _plain(value: object) -> object:
    """Converts other sequences and mappings to lists and dicts, for json.dumps."""
    if value is CLEAR:
        return None
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


#: The operations that wait: the field with how long, how long without it, and whether a response has nothing to wait for.
_UNTIL_DONE = ("wait", 0, lambda answer: answer["done"] is not True)
_WAITS: dict[str, tuple[str, float, Callable[[Mapping[str, Any]], bool]]] = {
    "task/next": ("wait", 0, lambda answer: answer["task"] is None),
    "task/{task_id}": ("wait", 0, lambda answer: answer["task"]["status"] not in ("completed", "failed")),
    "task/{task_id}/output": ("wait", 0, lambda answer: answer["data"] == "" and answer["ended"] is not True),
    "task/wait": _UNTIL_DONE,
    "group/{group}": _UNTIL_DONE,
    "poll": ("timeout", 25, lambda answer: len(answer["events"]) == 0),
    "message/receive": ("timeout", 5, lambda answer: len(answer["messages"]) == 0),  # with `blocking`
}


# ---- The output of tasks


def _read_output(
    call: _Call, task_id: str, attempt: int | None, from_: int | None, follow: bool, options: CallOptions | None
) -> Iterator[TaskGetOutputAnswer]:
    fields: dict[str, Any] = {"task_id": task_id, "attempt": attempt, "from": from_}
    while True:
        # The first call fails if the hub or the task does not exist; with `follow` the others wait for the hub.
        part = cast("TaskGetOutputAnswer", call("task/{task_id}/output", fields, options))
        if follow:
            options = _for_ever(options)
            fields["wait"] = 3600
        if part["attempt"] is not None:
            if part["data"] != "":
                yield part
            fields["attempt"], fields["from"] = part["attempt"], part["next_offset"]
            if part["next_offset"] < part["size"]:
                continue
            if part["ended"]:
                fields["attempt"], fields["from"] = part["attempt"] + 1, 0
        elif part["ended"]:
            return
        if not follow:
            return


# ---- Events: cursors in the hub's log

_Call = Callable[[str, "Mapping[str, Any] | None", "CallOptions | None"], Dict[str, Any]]

#: The most events of one answer.
_PAGE = 1000
_POLL_S = 50
#: A poll returns for task events only. For other kinds the log is read at this interval.
_LOOK_EVERY_S = 2
#: A hub that shuts down answers each poll at once.
_AFTER_EMPTY_POLL_S = 0.1


def _for_ever(options: CallOptions | None) -> CallOptions:
    """By default an iterator waits for an unavailable hub, until its Stop ends it."""
    chosen = options or CallOptions()
    return dataclasses.replace(chosen, retry=chosen.retry or Retry(for_s=_FOREVER))


def _read_log(
    call: _Call,
    since: int | None,
    kinds: Sequence[EventKind],
    task_id: str | None,
    node_id: str | None,
    group: str | None,
    tag: str | None,
    options: CallOptions,
) -> Iterator[Event]:
    only_tasks = len(kinds) > 0 and all(kind.startswith("task.") for kind in kinds)
    where = {"kind": kinds[0] if len(kinds) == 1 else None, "task_id": task_id, "node_id": node_id}
    where |= {"group": group, "tag": tag}

    def is_wanted(event: Event) -> bool:
        return (
            (not kinds or event["kind"] in kinds)
            and (task_id is None or event["task_id"] == task_id)
            and (node_id is None or event["node_id"] == node_id)
            and (group is None or event["data"].get("group") == group)
            and (tag is None or tag in str(event["data"].get("tags", "")).split(","))
        )

    try:
        cursor: int = since if since is not None else call("events", {"limit": 1}, options)["cursor"]
        is_at_end = False
        while True:
            if is_at_end and only_tasks:
                page = call("poll", {"since": cursor, "timeout": _POLL_S}, options)
            else:
                page = call("events", {"since": cursor, "limit": _PAGE, **where}, options)
            for event in cast("list[Event]", page["events"]):
                if is_wanted(event):
                    yield event
            is_empty = page["cursor"] == cursor
            cursor = page["cursor"]  # it may have gone back: the hub was restored from a backup
            is_at_end = is_empty or (is_at_end and only_tasks)
            if is_empty and only_tasks:
                _sleep(_AFTER_EMPTY_POLL_S, options.stop)
            elif is_empty:
                call("poll", {"timeout": _LOOK_EVERY_S}, options)
    except Stopped:
        return


@dataclasses.dataclass(frozen=True)
class StreamItem:
    """An item of a node's stream."""

    #: The cursor to resume from.
    id: int
    #: `message`, an EventKind, or `gap`: events between data["after"] and data["resumed_at"] are no longer stored.
    event: str
    #: A Message, an Event, or the two ends of a gap.
    data: dict[str, Any]


#: The hub sends a comment every 15 s: a stream that is silent for longer is dead.
_STREAM_SILENCE_S = 45
_RECONNECT_S = 3


def _read_stream(
    http: _Http, call: _Call, node_id: str, last_event_id: int | None, options: CallOptions
) -> Iterator[StreamItem]:
    path = f"/api/v1/agent/sse?{urlencode({'node_id': node_id})}"
    try:
        # Read before the first connection, so that one that breaks before its first event can be resumed.
        cursor = last_event_id
        if cursor is None:
            cursor = cast(int, call("events", {"limit": 1}, options)["cursor"])
        while True:
            headers = {"Last-Event-ID": str(cursor), "Accept": "text/event-stream"}
            request = _Request("GET", path, headers, silence_s=_STREAM_SILENCE_S, is_streamed=True)
            answer = http.send(request, _event_stream, options)
            try:
                for item in _read_items(answer):
                    cursor = item.id
                    yield item
            except HubUnreachable:
                pass  # the next connection resumes from the cursor
            finally:
                answer.close()
            _sleep(_RECONNECT_S * (0.5 + random.random() / 2), options.stop)
    except Stopped:
        return


def _read_items(answer: _Answer) -> Iterator[StreamItem]:
    """Yields the items of an event stream until it ends. Skips comments, and frames without an event."""
    fields: dict[str, str] = {}
    while line := answer.read_line():
        name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if line.strip(b"\r\n") != b"":
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
            continue
        if {"id", "event", "data"} <= fields.keys():
            yield StreamItem(int(fields["id"]), fields["event"], json.loads(fields["data"]))
        fields = {}


# ---- The worker


class TaskContext:
    """The second argument of a handler."""

    def __init__(
        self,
        stop: Stop,
        epoch: Callable[[], int],
        given: Context,
        inputs: list[TaskInput],
        extend: Callable[[Mapping[str, Any]], None],
        ask: Callable[[Mapping[str, Any]], Any],
        output: Callable[[str], None],
        report: Callable[[Sequence[Mapping[str, Any]]], float | None],
    ) -> None:
        #: Set when the result is no longer wanted: the task was taken away, its time is over, or the worker gives it
        #: back.
        self.stop = stop
        self._epoch = epoch
        #: The tasks on which it depends, in that order, with their whole results and files.
        self.inputs = inputs
        #: What the last worker of the task has saved for this one; None: nothing.
        self.checkpoint: Any = given["checkpoint"]["data"] if "checkpoint" in given else None
        #: The last attempts that failed, oldest first.
        self.failures: list[Failure] = given.get("failures", [])
        #: The questions of earlier attempts with their answers, oldest first.
        self.answers: list[Question] = given.get("answers", [])
        self._unused = list(self.answers)
        #: What the last completed tasks of its type have taught, newest first.
        self.lessons: list[Lesson] = given.get("lessons", [])
        self._extend = extend
        self._ask = ask
        self._output = output
        self._report = report

    @property
    def epoch(self) -> int:
        """The fencing token of this attempt."""
        return self._epoch()

    def extend(self, note: str | None = None) -> None:
        """Extends the lease, and records a progress note. The worker also extends the lease periodically."""
        self._extend({} if note is None else {"note": note})

    def save_checkpoint(self, data: Any) -> None:
        """Saves any JSON of at most 64 KiB for the next attempt, if this one does not finish. Extends the lease."""
        self._extend({"checkpoint": data})

    def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
        within: float | None = None,
        park: bool = False,
    ) -> Any:
        """Asks a person, or another agent, and returns the answer: any JSON, or None when there was none in time.

        While the question is open, the time limits of the task and of the handler do not run; afterwards both begin
        again in full. A question that an earlier attempt asked in the same words is not asked again.

        within: How long the question waits, in seconds; by default a day.
        park: Gives the task back to the hub until the answer is there, and raises Stopped: let it end the handler. The
            next attempt asks again, and gets the answer at once.
        """
        for known in self._unused:
            is_same = known["question"] == question and known["choices"] == list(choices)
            if is_same and known["schema"] == schema and known["state"] != "open":
                self._unused.remove(known)
                return known["answer"]
        fields = {"question": question, "choices": list(choices), "schema": schema, "within_s": within, "park": park}
        return self._ask(fields)

    def output(self, text: str) -> None:
        """Adds to the output of this attempt, which people can read while it runs. Never waits.

        It is sent every second, and before the result. While the hub is too slow or away, what exceeds 256 KiB is
        dropped, oldest first.
        """
        self._output(text)

    def report_usage(
        self,
        model: str,
        input_tokens: int,
        output_tokens: int,
        cost_usd: float | None = None,
        cached_tokens: int = 0,
    ) -> float | None:
        """Reports what a step of the work has used: each model call once.

        Do not repeat it: what cannot be sent now is sent with the next request about the task. Returns the dollars
        that the task may still cost; None if it has no limit, or the hub cannot be reached. A task that has cost too
        much is lost.
        """
        step = {"model": model, "input_tokens": input_tokens, "output_tokens": output_tokens}
        return self._report([{**step, "cached_tokens": cached_tokens, "cost_usd": cost_usd}])


class Handler(Protocol):
    """Does one task and returns its result.

    A mapping with `problem`, `improvement`, `lesson` or `output` is the result, in which missing texts are filled in.
    Any other JSON is the `output`. An output that is too large for a result becomes a file of the task.

    If it raises, the attempt has failed; the hub retries the task, except after a FatalError. A handler cannot be
    ended from outside: a long one must check `context.stop`.
    """

    def __call__(self, task: Task, context: TaskContext, /) -> object: ...


#: The hub takes so much in each of the three texts, and in all other fields together.
_TEXT_MAX_BYTES = 64 * 1024
_EXTRA_MAX_BYTES = 64 * 1024
#: Room for output_file and output_note next to a cut output.
_NOTE_BYTES = 1024
_LINE_MAX_CHARS = 1000
_TEXTS = ("problem", "improvement", "lesson")


def _result_of(value: object, title: str) -> dict[str, Any]:
    """Makes a result of whatever a handler has returned. Drops nothing."""
    fields: dict[str, Any] = {"output": value}
    if isinstance(value, Mapping):
        texts = [value[name] for name in _TEXTS if value.get(name) is not None]
        if (texts or "output" in value) and all(isinstance(text, str) for text in texts):
            fields = dict(value)
    filled = {"problem": title, "improvement": _sentence_of(fields.get("output", {})), "lesson": "none"}
    said = {name: fields[name] for name in _TEXTS if str(fields.get(name) or "").strip()}
    return {**fields, **filled, **said}


def _sentence_of(output: object) -> str:
    if output is None:
        return "no output"
    if isinstance(output, str):
        found = re.search(r"\S.*", output)
        return found[0].rstrip()[:_LINE_MAX_CHARS] if found else "no output"
    return json.dumps(output) if isinstance(output, (bool, int, float)) else "done"


def _fitted(result: dict[str, Any], upload: Callable[[bytes, str, str], str]) -> dict[str, Any]:
    """Returns the result as the hub takes it: an output that is too large is uploaded, and only its beginning stays."""
    texts = {name: str(result[name]) for name in _TEXTS}
    extra = {name: value for name, value in result.items() if name not in _TEXTS}
    is_fitting = all(len(text.encode("utf-8", "replace")) <= _TEXT_MAX_BYTES for text in texts.values())
    if is_fitting and len(_json_bytes(extra)) <= _EXTRA_MAX_BYTES:
        return result
    output = extra.get("output")
    if is_fitting and isinstance(output, str) and len(extra) == 1:
        content, name, content_type = output.encode("utf-8", "replace"), "output.txt", "text/plain"
        shown = {"output": _cut(output, _EXTRA_MAX_BYTES - _NOTE_BYTES)}
    else:
        content, name, content_type = _json_bytes({**texts, **extra}), "output.json", "application/json"
        shown = {}  # JSON that is too large is not cut: a part of it is not JSON
    file_id = upload(content, name, content_type)
    note = f"The output has {len(content)} bytes, too many for a result: file {file_id} has them."
    cut = {name: _cut(text, _TEXT_MAX_BYTES) for name, text in texts.items()}
    return {**cut, **shown, "output_file": file_id, "output_note": note}


def _json_bytes(value: object) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain).encode("utf-8", "replace")


def _cut(text: str, max_bytes: int) -> str:
    """Cuts a text so that it has at most `max_bytes` bytes as JSON."""
    end = max_bytes
    while True:
        part = text if end >= len(text) else f"{text[:end]}\u2026"
        size = len(_json_bytes(part))
        if size <= max_bytes:
            return part
        end = int(min(end, len(text)) * min(0.99, max_bytes / size))


@dataclasses.dataclass(frozen=True)
class WorkerEvent:
    """An event of a worker.

    `parked`: a question of the handler gave the task back until there is an answer. `lost`: the task was taken away;
    the error is the hub's refusal. `fault`: the worker survives it.
    """

    kind: Literal["registered", "started", "completed", "failed", "released", "parked", "lost", "fault", "left"]
    node_id: str
    #: None for `registered`, `left`, and a fault that concerns no task.
    task: Task | None = None
    #: Only for `failed`, `lost` and `fault`.
    error: BaseException | None = None
    #: Only for `completed`.
    lux_paid: float | None = None


def _log_worker(event: WorkerEvent) -> None:
    level = logging.INFO if event.error is None else logging.WARNING
    task = f" task {event.task['task_id']}" if event.task is not None else ""
    error = f": {_text_of(event.error)}" if event.error is not None else ""
    # Of an error in the handler's code the traceback is needed; of a refusal, or a failure on purpose, the text says all.
    is_explained = event.kind != "failed" or isinstance(event.error, (FatalError, LuxHubError))
    _LOG.log(level, "%s %s%s%s", event.node_id, event.kind, task, error, exc_info=None if is_explained else event.error)


_WAIT_S = 300
#: The pause after a fault, and after an answer that came at once and without a task.
#: The longest that a question waits for its answer.
_QUESTION_MAX_S = 604_800
_PAUSE_S = 1
#: How long a handler may take to end after its stop; then the worker goes on while it still runs.
_GRACE_S = 10
#: How many runs that are over a worker remembers: a copy that takes over may lack their ends.
_OVER_MAX = 1000
#: How long a worker that ends now tries to tell the hub.
_LAST_WORD_S = 2
#: How long a refused event stream is asked for in quick succession.
_STREAM_RETRY_S = 10
#: How often a worker whose event stream is refused asks for lost tasks, and for the stream.
_NO_STREAM_S = 30
#: The events after which a task may no longer be its holder's.
_MAY_BE_LOST = (
    "task.attempt_failed",
    "task.completed",
    "task.deleted",
    "task.failed",
    "task.released",
    "task.requeued",
    "task.revoked",
    "task.timed_out",
)
_ERROR_MAX_CHARS = 4000
#: Inputs of a task in one response.
_INPUTS_TOGETHER = 100
#: Usage reports in one request.
_USAGE_TOGETHER = 20
#: A hub raises all epochs by a multiple of this when it goes on from what it was before.
_EPOCHS_RAISED_BY = 1_000_000
#: The codes with which the hub refuses the usage of a request.
_WRONG_USAGE = ("invalid_request", "usage_limit")
#: The codes with which the hub refuses a task that is no longer this worker's.
_LOST = (
    "stale_lease",
    "not_assigned_to_node",
    "task_not_assigned",
    "task_completed",
    "task_failed",
    "task_not_found",
)


def _is_final(error: LuxHubError) -> bool:
    """Whether the hub refuses the worker."""
    return error.status < 500 and error.status != 409 and not _is_temporary(error)


def _is_loss(error: BaseException) -> bool:
    return isinstance(error, LuxHubError) and error.code in _LOST


#: Output is sent after this time, or at once when there are so many bytes.
_OUTPUT_EVERY_S = 1.0
_OUTPUT_SOON_BYTES = 16 * 1024
#: The hub takes so much at once.
_OUTPUT_SENT_MAX_BYTES = 64 * 1024
#: What may wait for the hub.
_OUTPUT_PENDING_MAX_BYTES = 256 * 1024


class _OutputSender:
    """Sends the output of a task while its handler runs, in a thread that begins with the first text.

    One request at a time, each at the offset where the last one ended, so that a repeat after a fault changes nothing.
    """

    def __init__(self, append: Callable[[int, str], int], stop: Stop) -> None:
        """`append` does not retry by itself. `stop`: nothing more may be sent."""
        self._append = append
        #: Guards the fields below. Notified when one of them changes.
        self._changed = threading.Condition()
        self._pending = bytearray()
        #: Bytes that were dropped since the last piece was taken.
        self._dropped = 0
        #: The rest is being sent: what the hub refuses now is not tried again.
        self._is_ending = False
        self._is_over = False
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], object] = lambda: None
        self._unsubscribe = stop.on_set(self.stop)

    def write(self, text: str) -> None:
        data = text.replace("\0", "\ufffd").encode("utf-8", "replace")
        with self._changed:
            if self._is_over or self._is_ending or not data:
                return
            self._pending += data
            excess = len(self._pending) - _OUTPUT_PENDING_MAX_BYTES
            if excess > 0:
                end = _character_end(self._pending, excess)
                del self._pending[:end]
                self._dropped += end
            if self._thread is None:
                self._thread = _thread("output", self._run)
            self._changed.notify_all()

    def end(self) -> None:
        """Sends the rest, and waits for a hub that cannot be reached until the stop."""
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        self.stop()

    def stop(self) -> None:
        """Sends nothing more."""
        with self._changed:
            self._is_over = True
            self._pending.clear()
            self._changed.notify_all()
        self._unsubscribe()

    def _run(self) -> None:
        offset: int | None = 0
        while offset is not None:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._is_done())
                self._changed.wait_for(
                    lambda: len(self._pending) >= _OUTPUT_SOON_BYTES or self._is_done(), _OUTPUT_EVERY_S
                )
                data = self._take()
            if data == "":
                return
            offset = self._send(offset, data)
        self.stop()

    def _is_done(self) -> bool:
        return self._is_ending or self._is_over

    def _take(self) -> str:
        """As much as one request carries; empty when all is sent."""
        note = ""
        if self._dropped > 0:
            note = f"\n[{self._dropped} bytes of output were dropped: the hub was too slow]\n"
        self._dropped = 0
        end = _character_end(self._pending, _OUTPUT_SENT_MAX_BYTES - len(note) - 3)
        data = self._pending[:end].decode("utf-8")
        del self._pending[:end]
        return note + data

    def _send(self, offset: int, data: str) -> int | None:
        """Returns the next offset; None when the hub refuses it, or nothing more may be sent."""
        attempt = 0
        rest = data
        while True:
            try:
                return self._append(offset, rest)
            except Stopped:
                return None
            except (LuxHubError, HubUnreachable) as error:
                # A copy that has taken over may lack the newest.
                is_ahead = isinstance(error, LuxHubError) and error.code == "wrong_offset"
                expected = error.problem.get("expected") if isinstance(error, LuxHubError) and is_ahead else None
                if isinstance(expected, int) and expected < offset:
                    rest = f"\n[{offset - expected} bytes of output were lost with the hub]\n{data}"
                    offset = expected
                    continue
                status = error.status if isinstance(error, LuxHubError) else 503
                is_away = status in (502, 503, 504)
                may_pass = is_away or status >= 500 or _is_temporary(error)
                with self._changed:
                    was_ending = self._is_ending
                    if self._is_over or not may_pass or (was_ending and not is_away):
                        return None
                    pause = _pause_after(error, attempt, Retry())
                    self._changed.wait_for(lambda: self._is_over or self._is_ending != was_ending, pause)
                attempt += 1


def _character_end(data: bytearray, end: int) -> int:
    """The first index from `end` on that is not within a character."""
    end = min(end, len(data))
    while end < len(data) and data[end] & 0b1100_0000 == 0b1000_0000:
        end += 1
    return end


class _Job:
    def __init__(self, task: Task, epoch: int, context: Context, output: _OutputSender, end: Stop) -> None:
        self.task = task
        self.epoch = epoch
        self.context = context
        self.output = output
        #: Set when the result is no longer wanted.
        self.abort = Stop()
        #: Set when the outcome has been reported, or can no longer be.
        self.end = end
        #: The handler has ended, and its outcome is being reported.
        self.is_ending = False
        #: Why the task is no longer this worker's.
        self.lost: LuxHubError | None = None
        #: The handler took too long.
        self.timed_out: TimeoutError | None = None
        #: A question gives the task back.
        self.is_parked = False
        #: How many questions of the handler wait, and when its time began.
        self.asking = 0
        self.began_at = time.monotonic()
        #: Dollars that the task may still cost, as the hub said last; None: it has no limit.
        self.budget_left: float | None = None
        self._lock = threading.Lock()
        self._steps = 0
        self._unsent: list[dict[str, Any]] = []

    @property
    def unsent(self) -> list[dict[str, Any]]:
        """Usage that has not reached the hub yet, oldest first."""
        with self._lock:
            return list(self._unsent)

    def add_usage(self, steps: Iterable[Mapping[str, Any]]) -> None:
        with self._lock:
            for step in steps:
                self._steps += 1
                self._unsent.append({**step, "seq": self._steps})

    def sent(self, usage: Iterable[Mapping[str, Any]]) -> None:
        numbers = {step["seq"] for step in usage}
        with self._lock:
            self._unsent = [step for step in self._unsent if step["seq"] not in numbers]


@dataclasses.dataclass(frozen=True)
class _Outcome:
    """The outcome of a handler: its result, or its error."""

    result: Any = None
    error: BaseException | None = None


class _Worker:
    """Takes tasks with task/next, runs the handler for each, and reports its result or error.

    A task belongs to the worker while the hub accepts its epoch (fencing token). When the hub refuses it, because
    the epoch is old or the task was ended or taken away, the task is lost: its handler's stop is set, and the
    result is dropped. A hub that was restored, or a copy that took over, has raised all epochs: then the worker goes on
    with the new epoch of the lease that it has. An event of the node that may mean a loss makes the worker ask the hub at once.

    Threads: the caller's takes tasks. Each job has one that reports, one that runs the handler, and with a
    timeout_s one that extends its lease. One sends heartbeats, one follows the events of the node. All but the
    caller's are daemons.
    """

    def __init__(
        self,
        call: _Call,
        stream: Callable[..., Iterator[StreamItem]],
        upload: Callable[..., FileRecord],
        node_id: str,
        handler: Handler,
        profile: Mapping[str, Any],
        task_types: Sequence[str] | None,
        concurrency: int,
        timeout: float | Literal["max_run_s"] | None,
        on_event: Callable[[WorkerEvent], object],
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency is at least 1")
        self._call = call
        self._stream = stream
        self._upload = upload
        self._timeout = timeout
        self._node_id = node_id
        self._handler = handler
        self._profile = profile
        self._task_types = task_types
        self._concurrency = concurrency
        self._on_event = on_event
        #: Set when the worker must take no more tasks.
        self._stop = Stop()
        #: Set when nothing more may be reported about the tasks.
        self._end = Stop()
        #: Guards the fields below and the state of jobs. Notified when a job ends, or the worker stops.
        self._changed = threading.Condition()
        self._jobs: set[_Job] = set()
        #: When each task began that the worker no longer does, by its id; the latest last.
        self._over: dict[str, str | None] = {}
        #: Tasks that may have been lost since the last task/next began: its response may still hand one of them out.
        self._lost_early: set[str] = set()
        #: Set when the worker must end now: a job that starts then is given back at once.
        self._released = Stop()
        #: The refusal of the hub that ends the worker.
        self._refusal: LuxHubError | None = None

    def run(self, stop: Stop, release: Stop, signals: bool) -> None:
        beats = Stop()
        self._stop.on_set(self._notify)
        forget = (stop.on_set(self._stop.set), release.on_set(self._release))
        try:
            with _signal_handlers(stop, release) if signals else contextlib.nullcontext():
                heartbeats = _thread("heartbeats", self._send_heartbeats, self._register(), beats)
                follower = _thread("events", self._follow_events, self._last_event_id(), beats)
                self._take_tasks()
                if self._running():
                    self._give_back_rest()
                with self._changed:
                    self._changed.wait_for(lambda: not self._jobs)
                beats.set()
                heartbeats.join()
                follower.join()
                self._leave()
        except (Stopped, LuxHubError, HubUnreachable):
            if not self._stop.is_set():
                raise
        finally:
            for unsubscribe in forget:
                unsubscribe()
            self._stop.set()
            self._end.set()
            beats.set()
            for job in self._running():
                job.abort.set()
        if self._refusal is not None:
            raise self._refusal

    def _running(self) -> list[_Job]:
        with self._changed:
            return list(self._jobs)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _release(self) -> None:
        self._stop.set()
        self._released.set()
        for job in self._running():
            job.abort.set()

    def _hurry(self, stop: Stop) -> None:
        """Sets the stop a moment after the worker was told to end now, or when it has ended."""

        def end() -> None:
            if not stop.wait(_LAST_WORD_S):
                stop.set()

        forget = (self._end.on_set(stop.set), self._released.on_set(lambda: _thread("last word", end)))
        stop.on_set(lambda: [unsubscribe() for unsubscribe in forget])

    # -- The node

    def _register(self) -> float:
        """Returns the interval of the heartbeats in seconds."""
        answer = self._call(
            "node/register",
            {
                "node_id": self._node_id,
                **self._profile,
                "max_tasks": self._concurrency,
                "auto_assign": False,
            },
            CallOptions(stop=self._stop, retry=Retry(for_s=_FOREVER)),
        )
        self._emit("registered")
        return float(answer["heartbeat_interval"])

    def _send_heartbeats(self, every_s: float, beats: Stop) -> None:
        """Keeps the node online while no task/next waits."""
        options = CallOptions(stop=beats, retry=Retry(for_s=every_s))
        while not beats.wait(every_s):
            try:
                answer = self._call("node/heartbeat", {"node_id": self._node_id}, options)
                # The hub took the node for dead meanwhile, or somebody took a task from it.
                running = self._running()
                if answer["tasks_assigned"] < len(running):
                    for job in running:
                        self._check(job)
                if answer["tasks_assigned"] > len(running) and self._over:
                    self._give_back_those(self._is_over, CallOptions(stop=beats))
            except Stopped:
                return
            except Exception as error:
                self._survive(error)

    def _last_event_id(self) -> int | None:
        """Returns where the stream of events begins: before the first task. None if the hub does not say."""
        options = CallOptions(stop=self._stop, retry=Retry(for_s=_FOREVER))
        try:
            return cast(int, self._call("events", {"limit": 1}, options)["cursor"])
        except (Stopped, LuxHubError, HubUnreachable):
            return None  # the stream begins a moment later

    def _follow_events(self, last_id: int | None, ended: Stop) -> None:
        """Follows the events of the node, so that a task that is cancelled or taken away is lost at once.

        If the hub refuses the stream, asks for lost tasks now and then.
        """
        options = CallOptions(stop=ended, retry=Retry(for_s=_STREAM_RETRY_S))
        is_refused = False
        while True:
            try:
                for item in self._stream(self._node_id, last_event_id=last_id, options=options):
                    last_id = item.id
                    is_refused = False
                    if item.event in _MAY_BE_LOST:
                        with self._changed:
                            self._lost_early.add(str(item.data.get("task_id")))
                    for job in self._running():
                        is_own = item.data.get("task_id") == job.task["task_id"]
                        if item.event == "gap" or (item.event in _MAY_BE_LOST and is_own):
                            self._check(job)
            except (LuxHubError, HubUnreachable) as error:
                if not is_refused:
                    self._emit("fault", error=error)
                is_refused = True
            if ended.wait(_NO_STREAM_S):
                return
            for job in self._running():
                self._check(job)

    def _leave(self) -> None:
        """Reports a failure only as an event: without heartbeats the node soon goes offline anyway."""
        stop = Stop()
        self._hurry(stop)
        try:
            options = CallOptions(stop=stop, retry=Retry(for_s=_GRACE_S))
            self._call("node/leave", {"node_id": self._node_id}, options)
            self._emit("left")
        except (Stopped, LuxHubError, HubUnreachable) as error:
            self._emit("fault", error=error)
        finally:
            stop.set()

    def _survive(self, fault: Exception) -> None:
        """Handles a fault of a repeated call: registers the node again, ends a refused worker, or pauses."""
        if isinstance(fault, LuxHubError) and fault.code == "node_not_found":
            try:
                self._register()
                return
            except Exception as error:
                fault = error
        if self._stop.is_set():
            return
        self._emit("fault", error=fault)
        if isinstance(fault, LuxHubError) and _is_final(fault):
            self._refusal = fault
            self._stop.set()
        self._stop.wait(_PAUSE_S)

    # -- Its tasks

    def _take_tasks(self) -> None:
        self._resume()
        while not self._stop.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._stop.is_set() or len(self._jobs) < self._concurrency)
            if self._stop.is_set():
                return
            asked_at = time.monotonic()
            with self._changed:
                self._lost_early.clear()
            taken = self._next({"wait": _WAIT_S, "task_types": self._task_types})
            if self._stop.is_set():
                return
            if taken is not None and taken["task"] is not None and taken["lease"] is not None:
                self._start(taken["task"], taken["lease"], taken.get("context", {}))
            elif time.monotonic() - asked_at < _PAUSE_S:
                self._stop.wait(_PAUSE_S)  # the node drains, or the hub stops

    def _resume(self) -> None:
        """Resumes the tasks that the node had started before this worker.

        The hub hands them out in a circle and counts each time as a restart of the task, so each is asked for once.
        """
        started = self._count_started()
        found: dict[str, tuple[Task, Lease, Context]] = {}
        for _ in range(min(started, self._concurrency)):
            taken = self._next({"resume": True})
            if taken is None or taken["task"] is None or taken["lease"] is None:
                break
            task = taken["task"]
            is_known = task["task_id"] in found
            found[task["task_id"]] = (task, taken["lease"], taken.get("context", {}))
            if is_known:  # another one ended meanwhile
                break
        if self._stop.is_set():
            return
        for task, lease, context in found.values():
            self._start(task, lease, context)
        if started > self._concurrency:
            self._give_back_rest()

    def _count_started(self) -> int:
        """How many tasks the node has started: all, or more than this worker runs at once. 0 after a fault."""
        options = CallOptions(stop=self._stop, retry=Retry(for_s=_FOREVER))
        held: dict[str, Any] = {"node_id": self._node_id, "status": "assigned", "per_page": 50}
        started = 0
        try:
            while started <= self._concurrency:
                page = self._call("task/list", held, options)
                started += sum(task["started_at"] is not None for task in page["tasks"])
                if page["next_cursor"] is None:
                    break
                held["cursor"] = page["next_cursor"]
        except Stopped:
            return 0
        except (LuxHubError, HubUnreachable) as error:
            self._survive(error)
            return 0
        return started

    def _give_back_rest(self) -> None:
        """Releases the tasks that the node holds and this worker does not run, because its jobs may take long."""
        own = {job.task["task_id"] for job in self._running()}
        stop = Stop()
        self._hurry(stop)
        try:
            self._give_back_those(lambda task: task["task_id"] not in own, CallOptions(stop=stop))
        except (Stopped, LuxHubError, HubUnreachable) as error:
            self._emit("fault", error=error)
        finally:
            stop.set()

    def _is_over(self, task: Task) -> bool:
        """Whether the hub takes a task for running whose end this worker has reported to a hub that is no more."""
        with self._changed:
            began_at = self._over.get(task["task_id"])
        return began_at is not None and began_at == task["started_at"]

    def _give_back_those(self, is_given_back: Callable[[Task], bool], options: CallOptions) -> None:
        held: dict[str, Any] = {"node_id": self._node_id, "status": "assigned", "per_page": 50}
        while True:
            page = self._call("task/list", held, options)
            for task in page["tasks"]:
                if is_given_back(task):
                    self._give_back_other(task["task_id"], options)
            if page["next_cursor"] is None:
                return
            held["cursor"] = page["next_cursor"]

    def _give_back_other(self, task_id: str, options: CallOptions) -> None:
        """What an earlier worker of the node did may be done only now, so that the task is no longer the node's."""
        try:
            self._call("task/release", {"task_id": task_id, "node_id": self._node_id}, options)
        except LuxHubError as error:
            if not _is_loss(error):
                raise

    def _next(self, asked: Mapping[str, Any]) -> TaskNextAnswer | None:
        """Calls task/next; None when that failed."""
        # Repeated without end with one Idempotency-Key, so that no task is lost whose dispatch did not reach us.
        options = CallOptions(stop=self._stop, retry=Retry(for_s=_FOREVER))
        try:
            answer = self._call("task/next", {"node_id": self._node_id, **asked}, options)
            return cast("TaskNextAnswer", answer)
        except Stopped:
            return None
        except (LuxHubError, HubUnreachable) as error:
            self._survive(error)
            return None

    def _start(self, task: Task, lease: Lease, context: Context) -> None:
        job = self._job_of(task, lease, context)
        with self._changed:
            before = [one for one in self._jobs if one.task["task_id"] == task["task_id"]]
            self._jobs.add(job)
            self._over.pop(task["task_id"], None)
            is_lost_early = task["task_id"] in self._lost_early
            if self._released.is_set():
                job.abort.set()
        again = "The task was taken from this worker, which then got it again."
        for one in before:
            self._lose(one, LuxHubError(409, "stale_lease", again))
        self._emit("started", task)
        if task["timeout_s"] is not None:
            _thread(f"lease {task['task_id']}", self._extend_lease, job, task["timeout_s"])
        _thread(f"job {task['task_id']}", self._work, job)
        if is_lost_early:
            self._check(job)

    def _job_of(self, task: Task, lease: Lease, context: Context) -> _Job:
        end = Stop()
        options = CallOptions(stop=end, retry=Retry(for_s=0))

        def append(offset: int, data: str) -> int:
            answer = self._call_as_holder(job, "task/output", {"offset": offset, "data": data}, options)
            return int(answer["next_offset"])

        job = _Job(task, lease["epoch"], context, _OutputSender(append, end), end)
        return job

    def _call_as_holder(
        self, job: _Job, operation: str, fields: Mapping[str, Any], options: CallOptions
    ) -> dict[str, Any]:
        return self._as_holder(job, lambda holder: self._call(operation, {**holder, **fields}, options))

    def _as_holder(self, job: _Job, send: Callable[[dict[str, Any]], _T]) -> _T:
        """Sends a request of the holder; if the hub has raised the epoch of the lease, again with the new one."""
        while True:
            epoch = job.epoch
            try:
                return send({"task_id": job.task["task_id"], "node_id": self._node_id, "epoch": epoch})
            except LuxHubError as error:
                if error.code != "stale_lease" or not self._is_raised(job, epoch):
                    raise

    def _is_raised(self, job: _Job, epoch: int) -> bool:
        """Learns the new epoch. A dispatch would have begun the task again, at another time."""
        if job.epoch != epoch:
            return True  # another request has learnt it
        current = {"task_id": job.task["task_id"], "node_id": self._node_id}
        try:
            answer = self._call("task/extend", current, CallOptions(stop=job.end, retry=Retry(for_s=_FOREVER)))
        except LuxHubError as error:
            if _is_loss(error):
                return False
            raise
        raised_by = answer["lease"]["epoch"] - epoch
        is_same = answer["task"]["started_at"] == job.task["started_at"]
        if raised_by <= 0 or raised_by % _EPOCHS_RAISED_BY != 0 or not is_same:
            return False
        job.epoch = answer["lease"]["epoch"]
        return True

    def _work(self, job: _Job) -> None:
        outcome = self._handle(job)
        with self._changed:
            job.is_ending = True
        self._hurry(job.end)
        try:
            if job.is_parked:
                self._emit("parked", job.task)
                return
            if job.lost is not None:
                return  # reported already
            # A task that is given back is another worker's as soon as it can be.
            if job.timed_out is not None or outcome.error is None or not job.abort.is_set():
                job.output.end()
            if job.timed_out is not None:
                self._fail(job, job.timed_out)
            elif outcome.error is None:
                self._complete(job, outcome.result)
            elif job.abort.is_set():
                self._conclude(job, "task/release", lambda _: {})
                self._emit("released", job.task)
            else:
                self._fail(job, outcome.error)
        except Exception as error:
            self._emit("lost" if _is_loss(error) else "fault", job.task, error)
        finally:
            job.output.stop()
            job.end.set()
            with self._changed:
                self._jobs.discard(job)
                self._remember(job.task)
                self._changed.notify_all()

    def _remember(self, task: Task) -> None:
        if any(one.task["task_id"] == task["task_id"] for one in self._jobs):
            return  # the hub has handed it out to this worker again
        self._over[task["task_id"]] = task["started_at"]
        if len(self._over) > _OVER_MAX:
            del self._over[next(iter(self._over))]

    def _handle(self, job: _Job) -> _Outcome:
        """Runs the handler. It counts as failed if it takes too long, or does not end within the grace after its stop."""
        outcomes: queue.SimpleQueue[_Outcome | None] = queue.SimpleQueue()

        def extend(fields: Mapping[str, Any]) -> None:
            refusal = self._extend(job, fields)
            if refusal is not None:
                raise refusal

        def ask(fields: Mapping[str, Any]) -> Any:
            with self._changed:
                job.asking += 1
            try:
                return self._ask(job, fields)
            finally:
                with self._changed:
                    job.asking -= 1
                    job.began_at = time.monotonic()

        def report(steps: Sequence[Mapping[str, Any]]) -> float | None:
            return self._report_usage(job, steps)

        def run() -> None:
            try:
                inputs = self._inputs_of(job)
                given = job.context
                context = TaskContext(
                    job.abort, lambda: job.epoch, given, inputs, extend, ask, job.output.write, report
                )
                outcomes.put(_Outcome(result=self._handler(job.task, context)))
            except BaseException as error:  # SystemExit, too, ends only the handler
                outcomes.put(_Outcome(error=error))

        _thread(f"task {job.task['task_id']}", run)
        unsubscribe = job.abort.on_set(lambda: outcomes.put(None))
        timeout_s = job.task["max_run_s"] if self._timeout == "max_run_s" else self._timeout
        try:
            try:
                outcome = self._outcome(job, outcomes, timeout_s)
            except queue.Empty:
                job.timed_out = TimeoutError(f"The handler timed out after {timeout_s:g} s.")
                job.abort.set()
                outcome = outcomes.get()  # the outcome that came meanwhile, or None
            if outcome is None:
                outcome = outcomes.get(timeout=_GRACE_S)
        except queue.Empty:
            outcome = None
        finally:
            unsubscribe()
        return outcome if outcome is not None else _Outcome(error=Stopped())

    def _outcome(
        self, job: _Job, outcomes: queue.SimpleQueue[_Outcome | None], timeout_s: float | None
    ) -> _Outcome | None:
        """Waits for the outcome. The time limit does not run while a question is open, and begins again in full then."""
        left = timeout_s
        while True:
            try:
                return outcomes.get(timeout=left)
            except queue.Empty:
                assert timeout_s is not None
                with self._changed:
                    left = timeout_s if job.asking > 0 else job.began_at + timeout_s - time.monotonic()
                if left <= 0:
                    raise

    def _inputs_of(self, job: _Job) -> list[TaskInput]:
        """The inputs of a task, whole: what had no room in its context is read page by page."""
        given = job.context.get("inputs", [])
        whole = next((i for i, one in enumerate(given) if one.get("omitted")), len(given))
        inputs = given[:whole]
        options = CallOptions(stop=job.abort, retry=Retry(for_s=_FOREVER))
        cursor = str(whole) if whole < len(given) else None
        while cursor is not None:
            asked = {"task_id": job.task["task_id"], "cursor": cursor, "limit": _INPUTS_TOGETHER}
            page = self._call("task/{task_id}/inputs", asked, options)
            inputs.extend(page["inputs"])
            cursor = page["next_cursor"]
        return inputs

    def _ask(self, job: _Job, fields: Mapping[str, Any]) -> Any:
        """Returns the answer; None: there was none in time."""
        park = fields["park"] is True
        if park:  # the task is no longer this worker's after that: what is not sent now is lost
            self._report_usage(job, [])
            while job.unsent:
                _sleep(_PAUSE_S, job.abort)
                self._report_usage(job, [])
            job.output.end()
        with self._changed:
            job.is_parked = park  # at once: the event that the task was released may be faster than the response
        options = CallOptions(stop=job.abort, retry=Retry(for_s=_FOREVER))
        try:
            asked = {**fields, "wait": 0 if park else _QUESTION_MAX_S}
            question = self._call_as_holder(job, "task/ask", asked, options)["question"]
        except BaseException as error:
            with self._changed:
                job.is_parked = False
            if isinstance(error, LuxHubError) and _is_loss(error):
                self._lose(job, error)
            raise
        if not park:
            return question["answer"]
        job.abort.set()
        raise Stopped()

    def _complete(self, job: _Job, result: object) -> None:
        key = secrets.token_hex(16)

        def upload(content: bytes, name: str, content_type: str) -> str:
            metadata = {"task_id": job.task["task_id"], "node": self._node_id}
            options = CallOptions(stop=job.end, retry=Retry(for_s=_FOREVER), idempotency_key=key)
            made = self._upload(content, name=name, content_type=content_type, metadata=metadata, options=options)
            return made["file_id"]

        made: dict[int, Any] = {}

        def result_for(epoch: int) -> dict[str, Any]:
            # Where the epoch is another one, a copy has taken over: it may lack the newest files.
            if epoch not in made:
                made[epoch] = _fitted(_result_of(result, job.task["title"]), upload)
            return {"result": made[epoch]}

        try:
            answer = self._conclude(job, "task/complete", result_for)
        except Exception as error:
            if _is_loss(error) or job.end.is_set():
                raise
            self._fail(job, error)  # the hub refuses this result
            return
        self._emit("completed", job.task, lux_paid=answer["lux_paid"])

    def _fail(self, job: _Job, error: BaseException) -> None:
        fields = {"error": _failure_text(error), "retry": not isinstance(error, FatalError)}
        self._conclude(job, "task/fail", lambda _: fields)
        self._emit("failed", job.task, error)

    def _conclude(
        self, job: _Job, operation: str, fields_for: Callable[[int], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Reports the outcome of a job with the usage that is not sent yet; without it if the hub refuses that."""
        while len(job.unsent) > _USAGE_TOGETHER:
            usage = job.unsent[:_USAGE_TOGETHER]
            try:
                self._insist(job, "task/extend", lambda _: {"usage": usage})
            except LuxHubError as error:
                if error.code not in _WRONG_USAGE:
                    raise
                self._emit("fault", job.task, error)
            job.sent(usage)
        usage = job.unsent
        try:
            more = {"usage": usage} if usage else {}
            return self._insist(job, operation, lambda epoch: {**fields_for(epoch), **more})
        except LuxHubError as error:
            if not usage or error.code not in _WRONG_USAGE:
                raise
            self._emit("fault", job.task, error)
            return self._insist(job, operation, fields_for)

    def _insist(
        self, job: _Job, operation: str, fields_for: Callable[[int], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Reports an outcome, however long the hub is unavailable or its disk full."""
        options = CallOptions(stop=job.end, retry=Retry(for_s=_FOREVER))

        def report(holder: dict[str, Any]) -> dict[str, Any]:
            return self._call(operation, {**holder, **fields_for(holder["epoch"])}, options)

        while True:
            try:
                return self._as_holder(job, report)
            except LuxHubError as error:
                if error.status < 500:
                    raise
                self._emit("fault", job.task, error)
                _sleep(_PAUSE_S, job.end)

    # -- Leases

    def _extend_lease(self, job: _Job, timeout_s: float) -> None:
        while job.lost is None and not job.end.wait(timeout_s / 3):
            self._check(job)

    def _check(self, job: _Job) -> None:
        """Finds out whether a task is still the worker's own."""
        if job.is_ending or job.is_parked or job.lost is not None:
            return
        refusal = self._extend(job, {})
        # A refusal of the task is its loss, or the outcome was faster.
        is_fault = refusal is not None and not _is_loss(refusal)
        if is_fault and job.lost is None and not job.end.is_set():
            self._emit("fault", job.task, refusal)

    def _extend(self, job: _Job, fields: Mapping[str, Any]) -> Exception | None:
        """Extends the lease of a job, and ends the job if its task is lost. Returns the error, or None."""
        try:
            answer = self._call_as_holder(job, "task/extend", fields, CallOptions(stop=job.end))
            if answer["status"] == "failed":
                failure = answer["task"]["failure"] or {}
                raise LuxHubError(409, "task_failed", failure.get("message") or "The task has failed.")
            job.budget_left = answer["budget_left_usd"]
            return None
        except (Stopped, LuxHubError, HubUnreachable) as error:
            if isinstance(error, LuxHubError) and _is_loss(error):
                self._lose(job, error)
            return error

    def _report_usage(self, job: _Job, steps: Sequence[Mapping[str, Any]]) -> float | None:
        """Sends usage, and what could not be sent before. Raises only if the hub refuses it."""
        job.add_usage(steps)
        while unsent := job.unsent:
            usage = unsent[:_USAGE_TOGETHER]
            refusal = self._extend(job, {"usage": usage})
            is_refused = refusal is not None and (
                _is_loss(refusal) or (isinstance(refusal, LuxHubError) and refusal.code in _WRONG_USAGE)
            )
            if refusal is not None and not is_refused:
                return None  # it is sent later
            job.sent(usage)
            if refusal is not None:
                raise refusal
        return job.budget_left

    def _lose(self, job: _Job, error: LuxHubError) -> None:
        with self._changed:
            if job.is_ending or job.is_parked or job.lost is not None:
                return  # once it ends, the report of the outcome will be refused; a parked one is no longer held
            job.lost = error
        job.output.stop()
        job.abort.set()
        self._emit("lost", job.task, error)

    def _emit(
        self,
        kind: Literal[
            "registered", "started", "completed", "failed", "released", "parked", "lost", "fault", "left"
        ],
        task: Task | None = None,
        error: BaseException | None = None,
        lux_paid: float | None = None,
    ) -> None:
        try:
            self._on_event(WorkerEvent(kind, self._node_id, task, error, lux_paid))
        except Exception:
            _LOG.exception("on_event failed")


def _thread(name: str, target: Callable[..., object], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, name=f"luxhub {name}", daemon=True)
    thread.start()
    return thread


def _failure_text(error: BaseException) -> str:
    name = "" if isinstance(error, FatalError) else type(error).__name__
    text = ": ".join(part for part in (name, str(error).strip()) if part != "").replace("\0", "")
    # The hub counts UTF-16 code units, and refuses lone surrogates.
    cut = text.encode("utf-16-le", "replace")[: 2 * _ERROR_MAX_CHARS].decode("utf-16-le", "ignore")
    return cut.strip() or "The handler failed."


@contextlib.contextmanager
def _signal_handlers(stop: Stop, release: Stop) -> Iterator[None]:
    """SIGTERM and SIGINT set `stop`, a second one sets `release`. Only the main thread may handle signals.

    A Python signal handler alone is not enough: it runs in the main thread, which may hold any lock then, and which
    a signal that the system delivers to another thread does not wake. So a thread reads the signal numbers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def listen() -> None:
        steps = [stop, release]
        while steps and (number := reader.recv(1)) != b"":
            if number[0] in numbers:
                steps.pop(0).set()

    listener = _thread("signals", listen)
    handlers = {number: signal.signal(number, lambda *_: None) for number in numbers}
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        writer.close()
        listener.join()
        reader.close()


# ---- The records and endpoints of the API. Generated from the endpoints' declarations by `bun run client-types`,
# ---- from here to the end: do not edit.

EventKind = Literal[
    "node.joined",
    "node.registered",
    "node.updated",
    "node.online",
    "node.offline",
    "node.draining",
    "node.left",
    "node.deleted",
    "task.created",
    "task.assigned",
    "task.stuck",
    "task.requeued",
    "task.revoked",
    "task.released",
    "task.progress",
    "task.asked",
    "task.answered",
    "task.question_timed_out",
    "task.attempt_failed",
    "task.timed_out",
    "task.failed",
    "task.retried",
    "task.updated",
    "task.completed",
    "task.review_requested",
    "task.review_passed",
    "task.review_rejected",
    "task.deleted",
    "group.ended",
    "schedule.saved",
    "schedule.skipped",
    "schedule.deleted",
    "webhook.saved",
    "webhook.deleted",
    "webhook.suspended",
    "webhook.resumed",
    "budget.set",
    "budget.deleted",
    "hub.paused",
    "hub.resumed",
    "limit.set",
    "limit.held",
    "limit.deleted",
    "budget.warning",
    "budget.exceeded",
    "usage.capped",
    "usage.voided",
    "lux.paid",
    "lux.signin",
    "message.sent",
    "message.acked",
    "message.parked",
    "message.expired",
    "file.uploaded",
    "file.deleted",
    "note.changed",
    "note.deleted",
    "hub.started",
    "hub.promoted",
    "standby.following",
    "standby.lost",
    "transport.changed",
]

ErrorCode = Literal[
    "invalid_request",
    "unauthorized",
    "admin_key_required",
    "host_not_allowed",
    "key_bound_to_other_node",
    "key_not_bound",
    "not_assigned_to_node",
    "not_your_message",
    "viewer_not_allowed",
    "lower_reward",
    "mint_limit",
    "own_work",
    "not_reviewer",
    "not_found",
    "node_not_found",
    "task_not_found",
    "message_not_found",
    "question_not_found",
    "file_not_found",
    "budget_not_found",
    "pause_not_found",
    "usage_not_found",
    "limit_not_found",
    "note_not_found",
    "key_not_found",
    "invitation_not_found",
    "schedule_not_found",
    "group_not_found",
    "webhook_not_found",
    "method_not_allowed",
    "request_timeout",
    "task_not_open",
    "task_not_assigned",
    "task_completed",
    "task_failed",
    "task_not_failed",
    "wrong_offset",
    "task_not_ready",
    "stale_lease",
    "node_draining",
    "node_offline",
    "message_not_parked",
    "note_version_conflict",
    "notes_limit",
    "lease_conflict",
    "lease_lost",
    "leases_limit",
    "nodes_limit",
    "lux_balance_limit",
    "task_files_limit",
    "question_answered",
    "question_timed_out",
    "questions_limit",
    "not_in_review",
    "review_decided",
    "verdict_missing",
    "compared_value_missing",
    "task_sealed",
    "node_excluded",
    "schedules_limit",
    "webhooks_limit",
    "usage_limit",
    "budget_exceeded",
    "budgets_limit",
    "paused",
    "pauses_limit",
    "limit_reached",
    "limits_limit",
    "too_many_lanes",
    "gifts_limit",
    "requirements_not_met",
    "key_exists",
    "keys_limit",
    "invitation_used",
    "invitation_expired",
    "invitations_limit",
    "entries_missing",
    "stale_term",
    "not_a_standby",
    "standby",
    "superseded",
    "no_standby",
    "standby_key_required",
    "ref_refused",
    "graph_too_large",
    "body_too_large",
    "unsupported_media_type",
    "range_not_satisfiable",
    "idempotency_key_reused",
    "quota_exceeded",
    "too_many_calls",
    "too_many_wrong_secrets",
    "client_closed_request",
    "internal_error",
    "content_missing",
    "outcome_unknown",
    "batch_full",
    "database_unavailable",
    "overloaded",
    "insufficient_storage",
]


class Lease(TypedDict):
    #: The fencing token: counts the dispatches of the task and its returns to open. Send the epoch with
    #: complete, fail, release and extend.
    epoch: int
    #: When the hub takes the task back, unless task/extend or task/complete comes first; null without a
    #: `timeout_s` and a `max_run_s`. No extend moves this time past the end of `max_run_s`.
    expires_at: str | None


class Failure(TypedDict):
    #: `failed`, `stalled`, `timed_out`, `offline`, `rejected`: why an attempt ended; `cancelled`, `expired`,
    #: `dependency`, `budget`, `no_quorum`: why the task ended.
    kind: Literal["failed", "stalled", "timed_out", "offline", "cancelled", "expired", "dependency", "budget", "rejected", "no_quorum"]
    #: The `error` of the node, or the `reason` of the cancellation.
    message: str | None
    #: The node that held the task or, if the task was cancelled, the node that cancelled it.
    node_id: str | None
    #: The time.
    at: str


TaskResult = Dict[str, Any]


class Spending(TypedDict):
    #: Tokens that the model read.
    input_tokens: int
    #: Tokens that the model wrote.
    output_tokens: int
    #: How many of the input tokens came from a cache.
    cached_tokens: int
    #: The sum of the known costs; null if no cost is known.
    cost_usd: float | None
    #: How many reports the sum has.
    reports: int
    #: How many of the reports had no `cost_usd`.
    without_cost: int


class Budget(TypedDict):
    #: What the budget is about: the whole hub, or one node, creator, type or group of tasks.
    scope: Literal["hub", "node", "creator", "type", "group"]
    #: The node, the creator, the type or the group; left out or null: the hub, tasks without a creator, or
    #: without a type.
    value: str | None
    #: The period: a day, a month (both in UTC), or all time.
    per: Literal["day", "month", "total"]
    #: Dollars; null: any.
    cost_usd: float | None
    #: Input and output tokens together; null: any.
    tokens: int | None
    #: `pause` (if left out): when the budget is used up, the hub hands out no task to which it applies.
    #: `warn`: the hub only logs an event.
    on_limit: Literal["pause", "warn"]
    #: `warning` from 80 % on, `exceeded` when the budget is used up.
    state: Literal["open", "warning", "exceeded"]
    #: Whether the budget keeps tasks back now.
    paused: bool
    #: The first day of the current period; null if the period is all time.
    since: str | None
    #: What was spent in the current period. A report without a cost adds no dollars: `without_cost` counts
    #: such reports.
    spent: Spending


class Pause(TypedDict):
    #: What is paused: the whole hub, or a type, a limit key or a creator of tasks.
    scope: Literal["hub", "type", "limit_key", "creator"]
    #: The type, the limit key or the creator; null: the hub, or tasks without a type.
    value: str | None
    #: Why.
    reason: str | None
    #: Since when.
    at: str


class Limit(TypedDict):
    #: The limit key; empty for tasks without a type.
    key: str
    #: How many tasks of the key may be assigned at once; null: any number.
    running: int | None
    #: How many tasks of the key may be handed out in any 60 s; null: any number.
    per_minute: int | None
    #: Until then no task of the key is handed out; null: the key is not held.
    held_until: str | None
    #: The node that holds the key; null: the key is not held, or no node was named.
    held_by: str | None
    #: How many tasks of the key are assigned; 0 without `running`.
    running_now: int
    #: How many tasks of the key were handed out in the last minute; 0 without `per_minute`.
    last_minute: int


class Reason(TypedDict):
    #: What keeps the task back.
    code: Literal["finished", "assigned", "not_before", "depends_on", "question", "review", "quorum", "paused", "limit", "rate", "budget", "no_node", "nodes_offline", "nodes_draining", "nodes_full", "in_line"]
    #: The reason in a sentence.
    detail: str
    #: When the reason ends by itself; null: this is not known.
    until: str | None
    #: Only of `depends_on`, and of `review` for a dependency: the first 20 tasks for which the task waits.
    task_ids: NotRequired[list[str]]
    #: Only of `no_node`: what the closest node lacks.
    missing: NotRequired[list[str]]


class Requirements(TypedDict):
    #: Words that must all be among the capabilities of the node.
    capabilities: list[str]
    #: Amounts by name, with three decimals.
    resources: dict[str, float]


class InputFile(TypedDict):
    #: The id of the file.
    file_id: str
    #: The name that people see.
    name: str
    #: The number of bytes.
    size: int
    #: What the file is for its task: `output` if the file's node was the `assigned_node` of the task when the
    #: file was attached, else `input`; null for a file of no task.
    attached: Literal["input", "output"]


class TaskInput(TypedDict):
    #: The task that must be completed first.
    task_id: str
    #: Null if the task was deleted.
    title: str | None
    #: Null if the task was deleted.
    status: Literal["open", "assigned", "completed", "failed", "pending"] | None
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: Null if the task has none, or `omitted` is true.
    result: TaskResult | None
    #: Whether the result came with a key that is bound to the node that completed the task.
    result_verified: bool
    #: The files.
    files: list[InputFile]
    #: True if the result or some of the files were left out, because there was no room.
    omitted: NotRequired[Literal[True]]


class Checkpoint(TypedDict):
    #: The checkpoint as the worker sent it.
    data: Any
    #: The epoch of the lease of the worker.
    epoch: int
    #: The node that sent the checkpoint.
    node_id: str
    #: The time.
    at: str


class Lesson(TypedDict):
    #: The id of the task.
    task_id: str
    #: What to do, in one line.
    title: str
    #: The hub compares it with the capabilities of nodes. A task without a type fits every node.
    task_type: str | None
    #: The node that completed the task.
    node_id: str
    #: Whether the result came with a key that is bound to that node.
    verified: bool
    #: When the task was completed.
    at: str
    #: The first 2,000 characters of `lesson` in the result of the task.
    lesson: str
    #: True if the `lesson` is longer than what is shown.
    truncated: NotRequired[Literal[True]]


class OutputAttempt(TypedDict):
    #: The epoch of the lease.
    attempt: int
    #: The node that sent the output.
    node_id: str
    #: The bytes that were sent, kept or not.
    size: int
    #: When the first output came.
    begun_at: str
    #: When the last output came.
    updated_at: str


class Question(TypedDict):
    #: The id of the question.
    question_id: str
    #: The id of the task.
    task_id: str
    #: What the worker wants to know.
    question: str
    #: Answers that the worker suggests; any other answer is possible too.
    choices: list[str]
    #: The JSON Schema (at most 8 KiB) of the answer that the worker expects. The hub shows the schema, but
    #: does not enforce it.
    schema: dict[str, Any] | None
    #: The node that asked.
    asked_by: str
    #: When the question was asked.
    asked_at: str
    #: When the question times out without an answer.
    until: str
    #: `timed_out`: the deadline of the question has passed, or the task ended first.
    state: Literal["open", "answered", "timed_out"]
    #: The answer; null if there is none.
    answer: Any
    #: The node that answered; null if the answer named none.
    answered_by: str | None
    #: When the question was answered or timed out; null while the question is open.
    answered_at: str | None
    #: Whether the answer came with a key that is bound to `answered_by`.
    verified: bool


class OpenQuestion(TypedDict):
    #: The id of the question.
    question_id: str
    #: The id of the task.
    task_id: str
    #: What the worker wants to know.
    question: str
    #: Answers that the worker suggests; any other answer is possible too.
    choices: list[str]
    #: The JSON Schema (at most 8 KiB) of the answer that the worker expects. The hub shows the schema, but
    #: does not enforce it.
    schema: dict[str, Any] | None
    #: The node that asked.
    asked_by: str
    #: When the question was asked.
    asked_at: str
    #: When the question times out without an answer.
    until: str
    #: `timed_out`: the deadline of the question has passed, or the task ended first.
    state: Literal["open", "answered", "timed_out"]
    #: The answer; null if there is none.
    answer: Any
    #: The node that answered; null if the answer named none.
    answered_by: str | None
    #: When the question was answered or timed out; null while the question is open.
    answered_at: str | None
    #: Whether the answer came with a key that is bound to `answered_by`.
    verified: bool
    #: The title of the task.
    task_title: str
    #: The node that created the task; this node need not be registered.
    creator_node: str | None


class Review(TypedDict):
    #: Who checks: `creator`, `node:<node_id>` or `capability:<word>`.
    by: str
    #: Seconds that a result waits for its review.
    within_s: float
    #: What happens when nobody has reviewed the result in time.
    on_timeout: Literal["pay", "reject"]
    #: The state of the last result; null until there is one.
    state: Literal["pending", "passed", "rejected"] | None
    #: The epoch of the dispatch that led to the result: send it with task/review.
    epoch: int | None
    #: The deadline of the review.
    until: str | None
    #: What the reviewer wrote.
    note: str | None
    #: The node that reviewed; null: the caller named no node, or the deadline decided.
    reviewed_by: str | None
    #: When the result was passed or rejected.
    reviewed_at: str | None
    #: Whether the deadline decided.
    timed_out: bool


class Quorum(TypedDict):
    #: How many results must agree.
    results: int
    #: How many copies there are at most.
    of: int
    #: What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
    #: pointers into the result.
    compare: str
    #: `failed`: the results cannot agree any more.
    state: Literal["pending", "agreed", "failed"]
    #: The ids of the copies of the task: tasks with `parent_task`.
    copies: list[str]
    #: The nodes whose results agree, the first to complete first.
    agreed: list[str]


class PendingReview(TypedDict):
    #: The id of the task.
    task_id: str
    #: What to do, in one line.
    title: str
    #: The node that created the task; this node need not be registered.
    creator_node: str | None
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The reward that is held until the review.
    lux_held: float
    #: How the result is checked, and until when.
    review: Review


class ContextReview(TypedDict):
    """Why the last result was rejected."""

    #: What the reviewer wrote.
    note: str | None
    #: The node that reviewed; null: the caller named no node, or the deadline decided.
    reviewed_by: str | None
    #: When the result was passed or rejected.
    reviewed_at: str | None


class Context(TypedDict):
    #: The tasks in `depends_on`, in that order. The results have at most 256 KiB together;
    #: task/<task_id>/inputs has all results.
    inputs: NotRequired[list[TaskInput]]
    #: What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint counts.
    checkpoint: NotRequired[Checkpoint]
    #: The newest questions about the task with their answers, oldest first: at most 20.
    answers: NotRequired[list[Question]]
    #: Why the last result was rejected.
    review: NotRequired[ContextReview]
    #: The last 5 attempts that failed, oldest first.
    failures: NotRequired[list[Failure]]
    #: What the last 5 completed tasks of the same type have taught, newest first: at most 2 KiB together, and
    #: of the same text the newest. Not for a task without a type.
    lessons: NotRequired[list[Lesson]]


class TaskSchedule(TypedDict):
    """The schedule that created the task; only on such tasks."""

    #: The name that people see.
    name: str
    #: The time.
    at: str | None


class Task(TypedDict):
    #: The id of the task.
    task_id: str
    #: What to do, in one line.
    title: str
    #: What to do; at most 64 KiB of UTF-8.
    description: str
    #: The hub compares it with the capabilities of nodes. A task without a type fits every node.
    task_type: str | None
    #: The urgency.
    priority: Literal[0, 1, 2, "high", "medium", "low", "p5"]
    #: LUX for the node that completes the task, with at most 6 decimals.
    lux_reward: float
    #: The node that created the task; this node need not be registered.
    creator_node: str | None
    #: Seconds that a node may hold the task without task/extend or task/complete.
    timeout_s: float | None
    #: Seconds that one attempt may take in all, extended or not; then the attempt has timed out.
    max_run_s: float | None
    #: Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that were
    #: created with it.
    retain_s: NotRequired[float]
    #: Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends the
    #: task permanently (kind `budget`). Null: no limit.
    max_cost_usd: float | None
    #: The task fails after this many attempts; by default after 10 failures and timeouts.
    max_attempts: int | None
    #: Seconds from a failed attempt until the task is open again (5 by default); doubles with each attempt,
    #: up to an hour.
    backoff_s: float
    #: The group of the task; only on a task of a group.
    group: NotRequired[str]
    #: The words by which to find the task; left out if there are none.
    tags: NotRequired[list[str]]
    #: What a node must have to get the task: all words in `capabilities`, and enough of each resource.
    requires: NotRequired[Requirements]
    #: The key whose limit (limit/set) applies to the task; if left out, the `task_type`.
    limit_key: NotRequired[str]
    #: The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left out,
    #: that of the request's header `traceparent`.
    traceparent: NotRequired[str]
    #: What tracing systems keep beside `traceparent`.
    tracestate: NotRequired[str]
    #: Whether the task was created with a key that is bound to its `creator_node`.
    creator_verified: bool
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The result as the node sent it; null until the task is completed.
    result: TaskResult | None
    #: Whether the result came with a key that is bound to the node that completed the task.
    result_verified: bool
    #: The number of the ledger entry that paid the task; left out if nothing was paid.
    paid_seq: NotRequired[int]
    #: Whether the task is open and may be handed out now.
    ready: bool
    #: Failed attempts: failures, timeouts, nodes that went offline, rejected results, an exceeded
    #: `max_cost_usd` and, with `max_attempts`, restarts.
    attempts: int
    #: How often task/next has handed the task out again with `resume`, because the worker ended. With
    #: `max_attempts` each restart counts as an attempt.
    restarts: int
    #: What all attempts of the task together have used, as the workers reported; null without any report.
    usage: Spending | None
    #: The task is not handed out before this time.
    not_before: str | None
    #: If the task is not completed by this time, the task fails.
    expires_at: str | None
    #: The ids of the tasks that must be completed first.
    depends_on: list[str]
    #: When the node started the task.
    started_at: str | None
    #: The last note of the node that holds the task.
    progress: str | None
    #: `answer` while a question about the task is open, `review` while the result waits for its review; else
    #: null.
    waiting_for: Literal["answer", "review"] | None
    #: How the results of the task are checked; only on tasks with a review.
    review: NotRequired[Review]
    #: How many nodes do the task, and whether their results agree; only on tasks with a quorum.
    quorum: NotRequired[Quorum]
    #: The task for which the hub created this task; only on tasks that the hub created.
    parent_task: NotRequired[str]
    #: `review`: this task checks the result of `parent_task`, and its own result needs a `verdict`. `copy`:
    #: this task is a copy of `parent_task`.
    made_for: NotRequired[Literal["review", "copy"]]
    #: Nobody can read what the worker of the copy has sent until the quorum is decided; only on copies.
    sealed: NotRequired[Literal[True]]
    #: Background work (`p5`), whose `priority` A shows as 2; only on such tasks.
    background: NotRequired[Literal[True]]
    #: Why the last attempt, or the task, failed.
    failure: Failure | None
    #: The ids of the files that are attached to the task, oldest first.
    files: list[str]
    #: The ids in `files` of the input files: files that the `assigned_node` of the task did not attach.
    inputs: list[str]
    #: The ids in `files` of the output files: files that the `assigned_node` of the task attached.
    outputs: list[str]
    #: The schedule that created the task; only on such tasks.
    schedule: NotRequired[TaskSchedule]
    #: While an unfinished task has this key, task/create makes no other task with the key, and returns the
    #: existing task (`deduplicated`).
    unique_key: NotRequired[str]
    #: Until this time the task holds its `unique_key`, finished or not.
    unique_until: NotRequired[str]
    #: `fail` (if left out): the task fails when a task in `depends_on` fails or is deleted. `run`: the task
    #: starts when all tasks in `depends_on` have ended: completed, failed or deleted.
    on_dependency: NotRequired[Literal["run"]]
    #: When the record was created.
    created_at: str
    #: When the record last changed.
    updated_at: str


class TaskSummarySchedule(TypedDict):
    """The schedule that created the task; only on such tasks."""

    #: The name that people see.
    name: str
    #: The time.
    at: str | None


class TaskSummary(TypedDict):
    #: The id of the task.
    task_id: str
    #: What to do, in one line.
    title: str
    #: The hub compares it with the capabilities of nodes. A task without a type fits every node.
    task_type: str | None
    #: The urgency.
    priority: Literal[0, 1, 2, "high", "medium", "low", "p5"]
    #: LUX for the node that completes the task, with at most 6 decimals.
    lux_reward: float
    #: The node that created the task; this node need not be registered.
    creator_node: str | None
    #: The task fails after this many attempts; by default after 10 failures and timeouts.
    max_attempts: int | None
    #: The group of the task; only on a task of a group.
    group: NotRequired[str]
    #: The words by which to find the task; left out if there are none.
    tags: NotRequired[list[str]]
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: Whether the task is open and may be handed out now.
    ready: bool
    #: Failed attempts: failures, timeouts, nodes that went offline, rejected results, an exceeded
    #: `max_cost_usd` and, with `max_attempts`, restarts.
    attempts: int
    #: The task is not handed out before this time.
    not_before: str | None
    #: If the task is not completed by this time, the task fails.
    expires_at: str | None
    #: How many tasks in `depends_on` are not completed yet.
    unmet_count: int
    #: When the node started the task.
    started_at: str | None
    #: The first line of the last note, at most 200 characters.
    progress: str | None
    #: `answer` while a question about the task is open, `review` while the result waits for its review; else
    #: null.
    waiting_for: Literal["answer", "review"] | None
    #: The task for which the hub created this task; only on tasks that the hub created.
    parent_task: NotRequired[str]
    #: `review`: this task checks the result of `parent_task`, and its own result needs a `verdict`. `copy`:
    #: this task is a copy of `parent_task`.
    made_for: NotRequired[Literal["review", "copy"]]
    #: Why the last attempt, or the task, failed.
    failure: Failure | None
    #: The schedule that created the task; only on such tasks.
    schedule: NotRequired[TaskSummarySchedule]
    #: When the record was created.
    created_at: str
    #: When the record last changed.
    updated_at: str


class TaskDetailsSchedule(TypedDict):
    """The schedule that created the task; only on such tasks."""

    #: The name that people see.
    name: str
    #: The time.
    at: str | None


class TaskDetailsUnmet(TypedDict):
    """The tasks in `depends_on` that are not completed yet."""

    #: How many of the tasks in `depends_on` are not completed yet.
    count: int
    #: The ids of the first 20 of these tasks, oldest first.
    task_ids: list[str]


class TaskDetails(TypedDict):
    #: The id of the task.
    task_id: str
    #: What to do, in one line.
    title: str
    #: What to do; at most 64 KiB of UTF-8.
    description: str
    #: The hub compares it with the capabilities of nodes. A task without a type fits every node.
    task_type: str | None
    #: The urgency.
    priority: Literal[0, 1, 2, "high", "medium", "low", "p5"]
    #: LUX for the node that completes the task, with at most 6 decimals.
    lux_reward: float
    #: The node that created the task; this node need not be registered.
    creator_node: str | None
    #: Seconds that a node may hold the task without task/extend or task/complete.
    timeout_s: float | None
    #: Seconds that one attempt may take in all, extended or not; then the attempt has timed out.
    max_run_s: float | None
    #: Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that were
    #: created with it.
    retain_s: NotRequired[float]
    #: Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends the
    #: task permanently (kind `budget`). Null: no limit.
    max_cost_usd: float | None
    #: The task fails after this many attempts; by default after 10 failures and timeouts.
    max_attempts: int | None
    #: Seconds from a failed attempt until the task is open again (5 by default); doubles with each attempt,
    #: up to an hour.
    backoff_s: float
    #: The group of the task; only on a task of a group.
    group: NotRequired[str]
    #: The words by which to find the task; left out if there are none.
    tags: NotRequired[list[str]]
    #: What a node must have to get the task: all words in `capabilities`, and enough of each resource.
    requires: NotRequired[Requirements]
    #: The key whose limit (limit/set) applies to the task; if left out, the `task_type`.
    limit_key: NotRequired[str]
    #: The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left out,
    #: that of the request's header `traceparent`.
    traceparent: NotRequired[str]
    #: What tracing systems keep beside `traceparent`.
    tracestate: NotRequired[str]
    #: Whether the task was created with a key that is bound to its `creator_node`.
    creator_verified: bool
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The result as the node sent it; null until the task is completed.
    result: TaskResult | None
    #: Whether the result came with a key that is bound to the node that completed the task.
    result_verified: bool
    #: The number of the ledger entry that paid the task; left out if nothing was paid.
    paid_seq: NotRequired[int]
    #: Whether the task is open and may be handed out now.
    ready: bool
    #: Failed attempts: failures, timeouts, nodes that went offline, rejected results, an exceeded
    #: `max_cost_usd` and, with `max_attempts`, restarts.
    attempts: int
    #: How often task/next has handed the task out again with `resume`, because the worker ended. With
    #: `max_attempts` each restart counts as an attempt.
    restarts: int
    #: What all attempts of the task together have used, as the workers reported; null without any report.
    usage: Spending | None
    #: The task is not handed out before this time.
    not_before: str | None
    #: If the task is not completed by this time, the task fails.
    expires_at: str | None
    #: The ids of the tasks that must be completed first.
    depends_on: list[str]
    #: When the node started the task.
    started_at: str | None
    #: The last note of the node that holds the task.
    progress: str | None
    #: `answer` while a question about the task is open, `review` while the result waits for its review; else
    #: null.
    waiting_for: Literal["answer", "review"] | None
    #: How the results of the task are checked; only on tasks with a review.
    review: NotRequired[Review]
    #: How many nodes do the task, and whether their results agree; only on tasks with a quorum.
    quorum: NotRequired[Quorum]
    #: The task for which the hub created this task; only on tasks that the hub created.
    parent_task: NotRequired[str]
    #: `review`: this task checks the result of `parent_task`, and its own result needs a `verdict`. `copy`:
    #: this task is a copy of `parent_task`.
    made_for: NotRequired[Literal["review", "copy"]]
    #: Nobody can read what the worker of the copy has sent until the quorum is decided; only on copies.
    sealed: NotRequired[Literal[True]]
    #: Background work (`p5`), whose `priority` A shows as 2; only on such tasks.
    background: NotRequired[Literal[True]]
    #: Why the last attempt, or the task, failed.
    failure: Failure | None
    #: The ids of the files that are attached to the task, oldest first.
    files: list[str]
    #: The ids in `files` of the input files: files that the `assigned_node` of the task did not attach.
    inputs: list[str]
    #: The ids in `files` of the output files: files that the `assigned_node` of the task attached.
    outputs: list[str]
    #: The schedule that created the task; only on such tasks.
    schedule: NotRequired[TaskDetailsSchedule]
    #: While an unfinished task has this key, task/create makes no other task with the key, and returns the
    #: existing task (`deduplicated`).
    unique_key: NotRequired[str]
    #: Until this time the task holds its `unique_key`, finished or not.
    unique_until: NotRequired[str]
    #: `fail` (if left out): the task fails when a task in `depends_on` fails or is deleted. `run`: the task
    #: starts when all tasks in `depends_on` have ended: completed, failed or deleted.
    on_dependency: NotRequired[Literal["run"]]
    #: When the record was created.
    created_at: str
    #: When the record last changed.
    updated_at: str
    #: The tasks in `depends_on` that are not completed yet.
    unmet: TaskDetailsUnmet


class Node(TypedDict):
    #: The id of the node.
    node_id: str
    #: The name that people see.
    name: str
    #: `offline` when the heartbeats of the node stopped, or the node left.
    status: Literal["online", "offline"]
    #: Where people can reach the node; not used by the hub.
    host: str | None
    #: Where people can reach the node; not used by the hub.
    port: int | None
    #: The task types that the node takes; empty means all.
    capabilities: str | list[str]
    #: What the node has; left out if the node registered no resources.
    resources: NotRequired[dict[str, float]]
    #: How much of each resource the node's unfinished tasks use.
    resources_used: NotRequired[dict[str, float]]
    #: The number of unfinished tasks up to which the hub hands open tasks to the node; null: no limit.
    max_tasks: int | None
    #: Whether the balancer may assign tasks to the node.
    auto_assign: bool
    #: Whether the node drains: a draining node gets no new tasks.
    draining: bool
    #: When the node first registered.
    registered_at: str
    #: The last heartbeat or registration.
    last_heartbeat: str
    #: The sum of the node's ledger entries.
    lux_balance: float
    #: How many unfinished tasks the node has.
    tasks_assigned: int
    #: How many tasks the node has completed.
    tasks_completed: int


class Message(TypedDict):
    #: The id of the message: `message_id` in the response to the send, and in the ACK.
    id: str
    #: The sender, which need not be registered.
    from_node: str
    #: The recipient; null for a broadcast.
    to_node: str | None
    #: The message itself; at most 256 KiB of UTF-8.
    content: str
    #: The kind of message.
    type: Literal["text", "task", "status", "broadcast", "alert", "update"]
    #: Whether the recipient must acknowledge the message; until then the hub delivers the message again, up
    #: to 5 times.
    require_ack: bool
    #: The id of the message to which this message replies; null if this message is no reply.
    reply_to: str | None
    #: The conversation: the id of its first message, or a name that the sender gives. A reply continues the
    #: conversation of the message to which it replies.
    thread: str
    #: Whether the message came with a key that is bound to its sender.
    verified: bool
    #: When the message was sent.
    sent_at: str


class ReceivedMessage(TypedDict):
    #: The id of the message: `message_id` in the response to the send, and in the ACK.
    id: str
    #: The sender, which need not be registered.
    from_node: str
    #: The recipient; null for a broadcast.
    to_node: str | None
    #: The message itself; at most 256 KiB of UTF-8.
    content: str
    #: The kind of message.
    type: Literal["text", "task", "status", "broadcast", "alert", "update"]
    #: Whether the recipient must acknowledge the message; until then the hub delivers the message again, up
    #: to 5 times.
    require_ack: bool
    #: The id of the message to which this message replies; null if this message is no reply.
    reply_to: str | None
    #: The conversation: the id of its first message, or a name that the sender gives. A reply continues the
    #: conversation of the message to which it replies.
    thread: str
    #: Whether the message came with a key that is bound to its sender.
    verified: bool
    #: When the message was sent.
    sent_at: str
    #: Whether the message was delivered before.
    redelivered: bool
    #: How often the message was delivered.
    deliveries: int


class HistoryMessageRecipients(TypedDict):
    #: How many recipients have not received the message yet.
    waiting: int
    #: How many recipients have received the message.
    delivered: int
    #: How many recipients have acknowledged the message.
    acked: int
    #: How many recipients never acknowledged the message.
    parked: int


class HistoryMessage(TypedDict):
    #: The id of the message: `message_id` in the response to the send, and in the ACK.
    id: str
    #: The sender, which need not be registered.
    from_node: str
    #: The recipient; null for a broadcast.
    to_node: str | None
    #: The message itself; at most 256 KiB of UTF-8.
    content: str
    #: The kind of message.
    type: Literal["text", "task", "status", "broadcast", "alert", "update"]
    #: Whether the recipient must acknowledge the message; until then the hub delivers the message again, up
    #: to 5 times.
    require_ack: bool
    #: The id of the message to which this message replies; null if this message is no reply.
    reply_to: str | None
    #: The conversation: the id of its first message, or a name that the sender gives. A reply continues the
    #: conversation of the message to which it replies.
    thread: str
    #: Whether the message came with a key that is bound to its sender.
    verified: bool
    #: When the message was sent.
    sent_at: str
    #: The delivery status: `waiting`, `delivered`, `acked` or `parked`.
    state: Literal["waiting", "delivered", "acked", "parked"] | None
    #: How often the message was delivered.
    deliveries: int | None
    #: The recipients of a broadcast that the node sent, counted by state; null for every other message.
    recipients: HistoryMessageRecipients | None


class NoteHead(TypedDict):
    #: The name of the note.
    key: str
    #: 1 for a new note; each change adds 1.
    version: int
    #: Who wrote this version; null: the request named no node.
    node_id: str | None
    #: Whether the note was written with a key that is bound to `node_id`.
    verified: bool
    #: The number of bytes of the key and the text in UTF-8.
    bytes: int
    #: When version 1 was written.
    created_at: str
    #: When this version was written.
    updated_at: str


class Note(TypedDict):
    #: The name of the note.
    key: str
    #: 1 for a new note; each change adds 1.
    version: int
    #: Who wrote this version; null: the request named no node.
    node_id: str | None
    #: Whether the note was written with a key that is bound to `node_id`.
    verified: bool
    #: The number of bytes of the key and the text in UTF-8.
    bytes: int
    #: When version 1 was written.
    created_at: str
    #: When this version was written.
    updated_at: str
    #: The content, at most 16 KiB.
    text: str


class FoundNote(TypedDict):
    #: The name of the note.
    key: str
    #: 1 for a new note; each change adds 1.
    version: int
    #: Who wrote this version; null: the request named no node.
    node_id: str | None
    #: Whether the note was written with a key that is bound to `node_id`.
    verified: bool
    #: The number of bytes of the key and the text in UTF-8.
    bytes: int
    #: When version 1 was written.
    created_at: str
    #: When this version was written.
    updated_at: str
    #: The first line of the text in which a word was found, or the beginning of the text; at most 200
    #: characters.
    excerpt: str


class AdvisoryLease(TypedDict):
    #: The name or glob.
    name: str
    #: The node that has the lease.
    node_id: str
    #: The task that the lease ends with; null: none.
    task_id: str | None
    #: Whether other nodes may have a shared lease on the same name.
    shared: bool
    #: The fencing number: larger than the number of every earlier lease. Send the number to the system that
    #: the lease protects, which refuses smaller numbers.
    fencing: int
    #: Seconds from an acquire or renew to the deadline.
    ttl_s: float
    #: When the lease was acquired.
    acquired_at: str
    #: The deadline, at which the lease ends.
    until: str


_LedgerEntryKeywords = TypedDict("_LedgerEntryKeywords", {
    #: The account that pays: `treasury`, or `held:` and the task_id.
    "from": "str",
})


class LedgerEntry(_LedgerEntryKeywords):
    #: The number of the entry in the ledger of all nodes: 1, 2, 3, …
    seq: int
    #: The id of the entry.
    id: str
    #: The node that was paid; null: the entry goes to another account.
    node_id: str | None
    #: The account that gets the LUX: `node:` and the node_id, `held:` and the task_id, or `treasury`.
    to: str
    #: LUX, exact to 6 decimals.
    amount: float
    #: `reward` of a task, `signin`, `hold` (a reward is held back) or `return` (a reward that was held back
    #: goes back to the treasury).
    kind: Literal["reward", "signin", "hold", "return"]
    #: The task of a `reward`, `hold` or `return`; null for a daily bonus.
    task_id: str | None
    #: The time.
    at: str
    #: The hash of the previous entry, 64 zeros for the first; null: the entry is older than the hash chain.
    prev_hash: str | None
    #: SHA-256 of the entry and of `prev_hash`, as hex (docs/concepts.md has the bytes); null: the entry is
    #: older than the hash chain.
    hash: str | None


class LedgerHead(TypedDict):
    #: The number of the newest entry; 0: the ledger has no entry.
    seq: int
    #: The hash of the newest entry; null: the entry is older than the hash chain, or there is no entry.
    hash: str | None


class Receipt(TypedDict):
    #: The id of the ledger entry.
    entry_id: str
    #: LUX that were paid.
    amount: float
    #: The hash of the ledger entry. Nobody can change this entry or an earlier entry without changing the
    #: hash. null: the entry is older than the hash chain.
    hash: str | None


class FileRecord(TypedDict):
    #: The id of the file.
    file_id: str
    #: The last part of the uploaded name.
    name: str
    #: The number of bytes.
    size: int
    #: SHA-256 of the bytes, in hexadecimal digits.
    sha256: str
    #: As uploaded; `application/octet-stream` if the uploaded type was invalid.
    content_type: str
    #: As uploaded, with all digits of numbers; `{}` for a file without metadata.
    metadata: dict[str, Any]
    #: The node that the file is attached to.
    node_id: str | None
    #: Whether the file was uploaded with a key that is bound to its node.
    verified: bool
    #: The task that the file is attached to.
    task_id: str | None
    #: What the file is for its task: `output` if the file's node was the `assigned_node` of the task when the
    #: file was attached, else `input`; null for a file of no task.
    attached: Literal["input", "output"] | None
    #: When the file was uploaded.
    uploaded_at: str
    #: The path from which to download the file.
    url: str


class ScheduleTaskQuorum(TypedDict):
    """Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the maximum number of copies (`results` to 15); if left out, as many as make `results` a majority."""

    #: How many results must agree.
    results: int
    #: How many copies there are at most.
    of: int
    #: What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
    #: pointers into the result.
    compare: str


class ScheduleTask(TypedDict):
    #: The name by which tasks after it need this one.
    ref: str
    #: The names of the tasks before it that it waits for.
    needs: list[str]
    #: As for task/create.
    on_dependency: Literal["fail", "run"]
    #: The task as it is now.
    task: ScheduleTaskTask


class ScheduleTaskTaskQuorum(TypedDict):
    """Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the maximum number of copies (`results` to 15); if left out, as many as make `results` a majority."""

    #: How many results must agree.
    results: int
    #: How many copies there are at most.
    of: int
    #: What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
    #: pointers into the result.
    compare: str


class ScheduleTaskTask(TypedDict):
    """The task as it is now."""

    #: What to do, in one line.
    title: str
    #: What to do; at most 64 KiB of UTF-8.
    description: str
    #: The hub compares it with the capabilities of nodes. A task without a type fits every node.
    task_type: str | None
    #: The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
    #: default); 2, `p2` or `low`; `p5` is background work.
    priority: Literal[0, 1, 2, "high", "medium", "low", "p5"]
    #: LUX for the node that completes the task, with at most 6 decimals.
    lux_reward: float
    #: The node that created the task; this node need not be registered.
    creator_node: str | None
    #: Seconds until the task may be handed out.
    delay_s: float
    #: Seconds that a node may hold the task without task/extend or task/complete.
    timeout_s: float | None
    #: Seconds that one attempt may take in all, extended or not; then the attempt has timed out.
    max_run_s: float | None
    #: Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that were
    #: created with it.
    retain_s: float | None
    #: Who checks the result before the reward is paid: `creator` (without a creator, any node except the
    #: worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for another
    #: node.
    review: NotRequired[str]
    #: Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out.
    review_within_s: NotRequired[float]
    #: What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`.
    on_review_timeout: NotRequired[Literal["pay", "reject"]]
    #: Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the maximum
    #: number of copies (`results` to 15); if left out, as many as make `results` a majority.
    quorum: NotRequired[ScheduleTaskTaskQuorum]
    #: Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends the
    #: task permanently (kind `budget`). Null: no limit.
    max_cost_usd: float | None
    #: The task fails after this many attempts; by default after 10 failures and timeouts.
    max_attempts: int | None
    #: Seconds from a failed attempt until the task is open again (5 by default); doubles with each attempt,
    #: up to an hour.
    backoff_s: float
    #: The name of the group of tasks; NAME/NODE of a group of a node's keys.
    group: NotRequired[str]
    #: The words by which to find the task; left out if there are none.
    tags: NotRequired[list[str]]
    #: What a node must have to get the task: all words in `capabilities`, and enough of each resource.
    requires: NotRequired[Requirements]
    #: The key whose limit (limit/set) applies to the task; if left out, the `task_type`.
    limit_key: NotRequired[str]
    #: The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left out,
    #: that of the request's header `traceparent`.
    traceparent: NotRequired[str]
    #: What tracing systems keep beside `traceparent`.
    tracestate: NotRequired[str]


class Schedule(TypedDict):
    #: The name of the schedule.
    name: str
    #: A cron expression: minute, hour, day of month, month, day of week; or `@daily` and the like.
    cron: str | None
    #: The time zone of `cron`, of the IANA database; `UTC` if left out.
    tz: str | None
    #: The seconds between two times, instead of `cron`; the first time comes after one interval.
    every_s: float | None
    #: The task that the schedule creates.
    task: ScheduleTask
    #: All tasks of a pipeline, of which `task` is the first; only on a schedule with a pipeline.
    tasks: NotRequired[list[ScheduleTask]]
    #: What happens at a time when an earlier task is unfinished: no new task (`skip`), or one more (`queue`).
    overlap: Literal["skip", "queue"]
    #: What happens after times at which no hub ran: a task for the last of these times (`one`), or none
    #: (`none`).
    catch_up: Literal["one", "none"]
    #: Each task may start up to this many seconds later.
    jitter_s: float
    #: The schedule creates no task after this time.
    until: str | None
    #: Whether the schedule is paused: it creates no tasks until a schedule/put without this field.
    paused: bool
    #: The next time; null while the schedule is paused, and after the last time.
    next_at: str | None
    #: The last task that the schedule created.
    last_task_id: str | None
    #: When the schedule created its last task.
    last_at: str | None
    #: When the record was created.
    created_at: str
    #: When the record last changed.
    updated_at: str


class Webhook(TypedDict):
    #: The name of the webhook; the name of a push config of A2A begins with `a2a:`.
    name: str
    #: The URL to which the webhook sends.
    url: str
    #: What the webhook sends: events as JSON (`luxhub`), notifications (`ntfy`), or the updates of A2A
    #: (`a2a`).
    format: Literal["luxhub", "a2a", "ntfy"]
    #: Only events of these kinds; if left out or empty, all kinds.
    kinds: list[EventKind]
    #: Only events of this task.
    task_id: str | None
    #: Only events of this node.
    node_id: str | None
    #: Only events of the tasks that this node created.
    creator_node: str | None
    #: Only events of the tasks of this group.
    group: str | None
    #: `suspended`: the webhook sends nothing until webhook/resume.
    state: Literal["active", "suspended"]
    #: The id of the last event that needs no delivery any more.
    cursor: int
    #: How often the delivery has failed since the last success, webhook/resume or change.
    attempts: int
    #: When the first of the failed attempts was; null: the last attempt succeeded.
    failing_since: str | None
    #: When the hub tries again.
    next_attempt_at: str | None
    #: Why the last attempt failed.
    last_error: str | None
    #: When the hub last delivered a message of the webhook.
    last_delivered_at: str | None
    #: When the record was created.
    created_at: str
    #: When the record last changed.
    updated_at: str


class KeyUsed(TypedDict):
    """What counts against the quotas of the node. Only in key/list, for a key of the role `full` that is bound to a node."""

    #: Unfinished tasks that the node's keys created.
    tasks: int
    #: Bytes that the node's keys have stored.
    bytes: int


class Key(TypedDict):
    #: The name of the key.
    name: str
    #: What the key may do. A viewer can read all but message contents; `admin` is for `X-Admin-Key`.
    role: Literal["full", "viewer", "admin", "standby"]
    #: Whether the key is `valid`, `expired` or `revoked`.
    state: Literal["valid", "expired", "revoked"]
    #: The variant of the responses to requests with the key; null: the variant of the listener.
    variant: Literal["A", "B"] | None
    #: The node that the key is bound to: it acts only for this node.
    node_id: str | None
    #: LUX that the key may promise per UTC day, as rewards of tasks. null: any amount, or none if the hub is
    #: strict and the key is bound to a node.
    mint_per_day: float | None
    #: When the key was made; null for the keys of the first start.
    created_at: str | None
    #: When the key expires; null: never.
    expires_at: str | None
    #: When the key was revoked.
    revoked_at: str | None
    #: What counts against the quotas of the node. Only in key/list, for a key of the role `full` that is
    #: bound to a node.
    used: NotRequired[KeyUsed]


class Invitation(TypedDict):
    #: The invitation.
    invitation_id: str
    #: The node for which the machine that joins gets a key.
    node_id: str
    #: Whether the invitation is `open`, `used` or `expired`.
    state: Literal["open", "used", "expired"]
    #: When the invitation was made.
    created_at: str
    #: When the invitation expires, by the hub's clock.
    expires_at: str
    #: When a machine joined with the invitation.
    used_at: str | None
    #: The name of the key that was made from the invitation; null until then.
    key: str | None


class Event(TypedDict):
    #: Increases with each commit.
    id: int
    #: The kind of event.
    kind: EventKind
    #: The time.
    at: str
    #: The node that the event is about.
    node_id: str | None
    #: The task that the event is about.
    task_id: str | None
    #: Who did what people do, as `PERSON@KEY`: the name of the key, after the name of the person that a proxy
    #: gives (`--user-header`); null for what nodes and the hub do.
    by: str | None
    #: Whether the request came with a key that is bound to the acting node: `node_id`, or of `message.sent`
    #: the sender.
    verified: bool
    #: The fields that depend on the kind.
    data: dict[str, str | float | bool | None]


class Durations(TypedDict):
    #: How many durations there are.
    count: int
    #: The sum of the durations, in seconds.
    sum_s: float
    #: The median in seconds, estimated; null without durations.
    p50_s: float | None
    #: The 95th percentile in seconds, estimated; null without durations.
    p95_s: float | None


class TypeStats(TypedDict):
    #: The type; null for tasks without a type.
    task_type: str | None
    #: Tasks that wait for nothing of their own, counted up to 50,000. Left out are the types beyond 1,000,
    #: and tasks beyond 1,000 lanes with requirements or a limit key of their own.
    open: int
    #: Since when the oldest open task may be handed out; null if there is none.
    oldest_open_at: str | None
    #: Open tasks that wait for their time, other tasks or an answer; of all types together counted up to
    #: 50,000.
    waiting: int
    #: Tasks that a node holds; of all types together counted up to 50,000.
    assigned: int
    #: How many of the open tasks a pause, a limit, a budget or the lack of a node holds back. Left out are
    #: pauses and budgets of creators and groups.
    held: int
    #: What holds the most of these tasks back.
    held_by: Literal["paused", "limit", "rate", "budget", "no_node", "nodes_offline", "nodes_draining", "depends_on", "question", "quorum", "not_before"] | None
    #: Tasks created in the last hour.
    created: int
    #: Tasks completed in the last hour.
    completed: int
    #: Tasks that failed in the last hour.
    failed: int
    #: How long tasks waited in the last hour until they were handed out, counted for each dispatch.
    time_to_start: Durations
    #: Nodes that could take a task of this type now: online, not draining and with room.
    takers: int
    #: Online nodes that take tasks of this type.
    nodes_online: int
    #: Nodes, online or not, that take tasks of this type.
    nodes_registered: int


class HeldStatsCause(TypedDict):
    #: The type of the tasks; null for tasks without a type, and of any type.
    task_type: str | None
    #: The maximum number to return.
    count: int
    #: What holds them back, in a sentence; null if the code says it all.
    detail: str | None


class HeldStats(TypedDict):
    #: What holds the tasks back, in the words of task/<task_id>/explain. Each task counts once, under the
    #: first that applies.
    code: Literal["paused", "limit", "rate", "budget", "no_node", "nodes_offline", "nodes_draining", "depends_on", "question", "quorum", "not_before"]
    #: How many open tasks: as many as task/list lists with this code as `held`.
    count: int
    #: False: there may be more, because a count ends at 50,000.
    exact: bool
    #: Since when the oldest of the tasks could run without this, or, if it waits for something of its own,
    #: when it was created.
    oldest_at: str | None
    #: The 10 largest causes, the largest first.
    causes: list[HeldStatsCause]


class FailureGroup(TypedDict):
    #: The id of the group: `failure_group` of task/list and task/count selects the tasks of the group.
    group: str
    #: The type of the tasks; null for tasks without a type.
    task_type: str | None
    #: The kind of the failures.
    kind: Literal["failed", "stalled", "timed_out", "offline", "cancelled", "expired", "dependency", "budget", "rejected", "no_quorum"]
    #: The first line of the newest message. The messages of a group differ only in numbers and ids.
    message: str
    #: How many tasks of the group have failed.
    count: int
    #: At how many nodes the tasks failed.
    nodes: int
    #: The first 5 of the nodes at which the tasks failed, the node with the most failures first.
    node_ids: list[str]
    #: When the last task failed.
    last_at: str
    #: The task that failed last.
    task_id: str


class Minute(TypedDict):
    #: When the minute begins.
    at: str
    #: How many tasks were created.
    tasks_created: int
    #: How often a task was handed out.
    tasks_started: int
    #: How many tasks were completed.
    tasks_completed: int
    #: How many attempts ended without a result.
    attempts_failed: int
    #: How many tasks failed permanently, without `tasks_cancelled`.
    tasks_failed: int
    #: How many tasks were cancelled, or expired.
    tasks_cancelled: int
    #: LUX paid, including daily bonuses.
    lux_paid: float
    #: How many messages were sent; a broadcast counts once.
    messages_sent: int
    #: The time from when a task became ready until its first dispatch.
    time_to_start: Durations
    #: The time from the creation or the `not_before` of a task until its completion.
    time_to_finish: Durations


class MinutesTotal(TypedDict):
    #: How many tasks were created.
    tasks_created: int
    #: How often a task was handed out.
    tasks_started: int
    #: How many tasks were completed.
    tasks_completed: int
    #: How many attempts ended without a result.
    attempts_failed: int
    #: How many tasks failed permanently, without `tasks_cancelled`.
    tasks_failed: int
    #: How many tasks were cancelled, or expired.
    tasks_cancelled: int
    #: LUX paid, including daily bonuses.
    lux_paid: float
    #: How many messages were sent; a broadcast counts once.
    messages_sent: int
    #: The time from when a task became ready until its first dispatch.
    time_to_start: Durations
    #: The time from the creation or the `not_before` of a task until its completion.
    time_to_finish: Durations


class TaskAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The node's hold on the task.
    lease: Lease
    #: The task as it is now.
    task: Task
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class EventBatch(TypedDict):
    success: Literal[True]
    #: The events, oldest first.
    events: list[Event]
    #: The id of the last event that the hub examined: the next `since`.
    cursor: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class ProblemError(TypedDict):
    #: With dots, as `result.problem`; empty for the whole body.
    path: str
    #: What to send instead.
    message: str


class Problem(TypedDict):
    """An error (RFC 9457, problem details)."""

    #: `urn:luxhub:problem:` and the code.
    type: str
    #: The error in a few words; the same for each error of this code.
    title: str
    #: The status of the response.
    status: int
    #: A sentence that says what to do.
    detail: str
    success: Literal[False]
    #: The code. Rely on it.
    error: ErrorCode
    #: Of `invalid_request`: every field that is wrong.
    errors: NotRequired[list[ProblemError]]
    #: Of `note_version_conflict`: the current version of the note; 0: there is none.
    version: NotRequired[int]
    #: Of `lease_conflict`: the leases that are in the way, oldest first, at most 20.
    holders: NotRequired[list[AdvisoryLease]]
    #: Of `quota_exceeded`: what is used, in tasks or in bytes.
    used: NotRequired[int]
    #: Of `quota_exceeded`: what the quota allows.
    allowed: NotRequired[int]
    #: Of `wrong_offset`: where the output continues.
    expected: NotRequired[int]


class NodeRegisterAnswer(TypedDict):
    success: Literal[True]
    #: The id of the node.
    node_id: str
    #: The node is online from now on.
    status: Literal["online"]
    #: False if the node was registered before.
    created: bool
    #: Seconds between two heartbeats.
    heartbeat_interval: float
    #: Seconds without a heartbeat after which the node is offline.
    offline_after: float
    #: The node as it is now.
    node: Node
    #: The base URLs of the hub and of its copies, the one that accepts writes first; left out while there is
    #: no copy.
    hubs: NotRequired[list[str]]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NodeHeartbeatAnswer(TypedDict):
    success: Literal[True]
    #: The id of the node.
    node_id: str
    #: The node is online.
    status: Literal["online"]
    #: The last heartbeat or registration.
    last_heartbeat: str
    #: Seconds between two heartbeats.
    heartbeat_interval: float
    #: How many unfinished tasks the node has.
    tasks_assigned: int
    #: How many messages are in the node's mailbox.
    messages_waiting: int
    #: Whether the node drains: a draining node finishes its tasks and gets no new tasks.
    drain: bool
    #: The base URLs of the hub and of its copies, the one that accepts writes first; left out while there is
    #: no copy.
    hubs: NotRequired[list[str]]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NodeLeaveAnswer(TypedDict):
    success: Literal[True]
    #: The id of the node.
    node_id: str
    #: The node is offline.
    status: Literal["offline"]
    #: How many tasks the node gave back.
    tasks_released: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NodeDrainAnswer(TypedDict):
    success: Literal[True]
    #: The id of the node.
    node_id: str
    #: Whether the node drains: a draining node finishes its tasks and gets no new tasks.
    drain: bool
    #: How many unfinished tasks the node has.
    tasks_assigned: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NodeDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The id of the node.
    node_id: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NodeListAnswer(TypedDict):
    success: Literal[True]
    #: All nodes.
    nodes: list[Node]
    #: The tasks.
    tasks: NotRequired[list[TaskSummary]]
    #: The number of the page, from 1.
    page: NotRequired[int | None]
    #: Rows on a page; above 50 is read as 50.
    per_page: NotRequired[int]
    #: How many nodes match; null if the hub did not count the nodes.
    total: NotRequired[int | None]
    #: How many pages there are; null if the hub did not count the nodes.
    pages: NotRequired[int | None]
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: NotRequired[str | None]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NodeGetAnswer(TypedDict):
    success: Literal[True]
    #: The node as it is now.
    node: Node
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class StatsNodesAnswerByStatus(TypedDict):
    """How many nodes there are in each state."""

    #: Online nodes, including draining ones.
    online: int
    #: Nodes that left or whose heartbeats stopped.
    offline: int


class StatsNodesAnswer(TypedDict):
    success: Literal[True]
    #: How many nodes are registered.
    total: int
    #: How many nodes there are in each state.
    by_status: StatsNodesAnswerByStatus
    #: Online nodes that take no new tasks.
    draining: int
    #: The sum of the balances of all nodes.
    lux_balance: float
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskCreateQuorum(TypedDict):
    """Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the maximum number of copies (`results` to 15); if left out, as many as make `results` a majority."""

    #: How many results must agree.
    results: int
    #: How many copies there are at most.
    of: NotRequired[int]
    #: What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
    #: pointers into the result.
    compare: NotRequired[str]


class TaskCreateRequires(TypedDict):
    """What a node must have to get the task: all words in `capabilities`, and enough of each resource."""

    #: Words that must all be among the capabilities of the node.
    capabilities: NotRequired[str | Sequence[str]]
    #: Up to 16 amounts by name (at most 64 characters), rounded to three decimals.
    resources: NotRequired[Mapping[str, float]]


class TaskCreateAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The node's hold on the task.
    lease: Lease
    #: The task as it is now.
    task: Task
    #: Only if true: no task was created, because this task has the `unique_key`.
    deduplicated: NotRequired[Literal[True]]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskNextAnswer(TypedDict):
    success: Literal[True]
    #: The handed-out task; null if there was none within `wait`.
    task: Task | None
    #: The node's hold on the task; null without a task.
    lease: Lease | None
    #: Whether the node drains: a draining node gets no new tasks.
    drain: bool
    #: What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing.
    context: NotRequired[Context]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskClaimAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The node's hold on the task.
    lease: Lease
    #: The task as it is now.
    task: Task
    #: What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing.
    context: NotRequired[Context]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskCompleteUsage(TypedDict):
    #: The worker's number for the report: a repeat under the same number in the same attempt counts once.
    seq: int
    #: The model that was used.
    model: str
    #: Tokens that the model read.
    input_tokens: int
    #: Tokens that the model wrote.
    output_tokens: int
    #: How many of the input tokens came from a cache.
    cached_tokens: NotRequired[int | None]
    #: Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not
    #: zero.
    cost_usd: NotRequired[float | None]


class TaskCompleteAnswer(TypedDict):
    success: Literal[True]
    #: The task is completed.
    status: Literal["completed"]
    #: LUX that the task paid.
    lux_paid: float
    #: The reward while the result waits for its review; only on tasks with a review.
    lux_held: NotRequired[float]
    #: The entry of the ledger that paid the task; null if nothing was paid. A repeat gets the same receipt.
    receipt: Receipt | None
    #: The id of the task.
    task_id: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskReleaseUsage(TypedDict):
    #: The worker's number for the report: a repeat under the same number in the same attempt counts once.
    seq: int
    #: The model that was used.
    model: str
    #: Tokens that the model read.
    input_tokens: int
    #: Tokens that the model wrote.
    output_tokens: int
    #: How many of the input tokens came from a cache.
    cached_tokens: NotRequired[int | None]
    #: Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not
    #: zero.
    cost_usd: NotRequired[float | None]


class TaskFailUsage(TypedDict):
    #: The worker's number for the report: a repeat under the same number in the same attempt counts once.
    seq: int
    #: The model that was used.
    model: str
    #: Tokens that the model read.
    input_tokens: int
    #: Tokens that the model wrote.
    output_tokens: int
    #: How many of the input tokens came from a cache.
    cached_tokens: NotRequired[int | None]
    #: Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not
    #: zero.
    cost_usd: NotRequired[float | None]


class TaskExtendUsage(TypedDict):
    #: The worker's number for the report: a repeat under the same number in the same attempt counts once.
    seq: int
    #: The model that was used.
    model: str
    #: Tokens that the model read.
    input_tokens: int
    #: Tokens that the model wrote.
    output_tokens: int
    #: How many of the input tokens came from a cache.
    cached_tokens: NotRequired[int | None]
    #: Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not
    #: zero.
    cost_usd: NotRequired[float | None]


class TaskExtendAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The node's hold on the task.
    lease: Lease
    #: The task as it is now.
    task: Task
    #: What the task may still cost; null without `max_cost_usd`.
    budget_left_usd: float | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskRetryAnswerDependents(TypedDict):
    """Only with `with_dependents`."""

    #: How many dependents were opened again.
    opened: int
    #: How many tasks are left, at most 100,000: repeat the call.
    left: int


class TaskRetryAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The node's hold on the task.
    lease: Lease
    #: The task as it is now.
    task: Task
    #: Only with `with_dependents`.
    dependents: NotRequired[TaskRetryAnswerDependents]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskBatchAssignAssignment(TypedDict):
    #: The id of the task.
    task_id: str
    #: The id of the node.
    node_id: str


class TaskBatchAssignAnswerAssignment(TypedDict):
    #: The id of the task.
    task_id: str
    #: The id of the node.
    node_id: str


class TaskBatchAssignAnswerResult(TypedDict):
    #: The id of the task.
    task_id: str
    #: The id of the node.
    node_id: str
    success: bool
    #: The code of the error; null if it succeeded.
    error: str | None


class TaskBatchAssignAnswer(TypedDict):
    success: Literal[True]
    #: How many tasks were assigned.
    assigned: NotRequired[int]
    #: How many open tasks are left.
    pending: NotRequired[int]
    #: The tasks and the nodes that get them.
    assignments: NotRequired[list[TaskBatchAssignAnswerAssignment]]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]
    #: The result of each assignment, in the same order.
    results: NotRequired[list[TaskBatchAssignAnswerResult]]


class TaskDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskListAnswer(TypedDict):
    success: Literal[True]
    #: The tasks.
    tasks: list[Task]
    #: The number of the page, from 1.
    page: int | None
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: How many tasks match; null if the hub did not count the tasks.
    total: int | None
    #: How many pages there are; null if the hub did not count the tasks.
    pages: int | None
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskListFieldsSummaryAnswer(TypedDict):
    success: Literal[True]
    #: The tasks.
    tasks: list[TaskSummary]
    #: The number of the page, from 1.
    page: int | None
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: How many tasks match; null if the hub did not count the tasks.
    total: int | None
    #: How many pages there are; null if the hub did not count the tasks.
    pages: int | None
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskCountAnswer(TypedDict):
    success: Literal[True]
    #: How many tasks match.
    count: int
    #: False: more tasks may match, because one call examines 50,000 tasks.
    exact: bool
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskWaitAnswerTask(TypedDict):
    #: The id of the task.
    task_id: str
    #: What to do, in one line.
    title: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The last note of the node that holds the task.
    progress: str | None
    #: Why the last attempt, or the task, failed.
    failure: Failure | None
    #: When the record last changed.
    updated_at: str


class TaskWaitAnswer(TypedDict):
    success: Literal[True]
    #: Whether all, or any, of the tasks have ended, as `until` asks.
    done: bool
    #: The state of each task, in the order of `task_ids`.
    tasks: list[TaskWaitAnswerTask]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskPullAnswer(TypedDict):
    success: Literal[True]
    #: The tasks.
    tasks: list[Task]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskStatsAnswerByStatus(TypedDict):
    """How many tasks there are of each status."""

    #: How many of the tasks are open or assigned.
    pending: NotRequired[int]
    #: How many of the tasks are completed.
    completed: int
    #: How many of the tasks have failed.
    failed: int
    #: How many of the tasks are open.
    open: NotRequired[int]
    #: How many of the tasks are assigned.
    assigned: NotRequired[int]


class TaskStatsAnswerTopNode(TypedDict):
    #: The id of the node.
    node_id: str
    #: How many tasks the node has completed.
    completed: int
    #: LUX that the node earned with completed tasks.
    lux_earned: float


class TaskStatsAnswer(TypedDict):
    success: Literal[True]
    #: The total number.
    total: int
    #: How many tasks there are of each status.
    by_status: TaskStatsAnswerByStatus
    #: The nodes that completed most, at most 10.
    top_nodes: list[TaskStatsAnswerTopNode]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskGetAnswer(TypedDict):
    success: Literal[True]
    #: The task as it is now.
    task: TaskDetails
    #: What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing.
    context: NotRequired[Context]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskGetInputsAnswer(TypedDict):
    success: Literal[True]
    #: The tasks in `depends_on`, in that order.
    inputs: list[TaskInput]
    #: The total number.
    total: int
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskGetGraphAnswerTask(TypedDict):
    #: The id of the task.
    task_id: str
    #: What to do, in one line.
    title: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The tasks in `depends_on` that the response has.
    depends_on: list[str]
    #: How many of the tasks in `depends_on` have not ended as this task needs.
    unmet_count: int
    #: 0: the task itself; -1: its dependencies; -2, -3: the dependencies of these; 1: tasks that wait for the
    #: task, or failed because of it.
    layer: int


class TaskGetGraphAnswer(TypedDict):
    success: Literal[True]
    #: The task, the tasks that it depends on in up to 3 layers, and the tasks that wait for it in one layer.
    #: A layer has up to 50 tasks.
    tasks: list[TaskGetGraphAnswerTask]
    #: How many tasks wait for the task, or failed because of it; at most 10,000 are counted.
    dependents: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LessonsAnswer(TypedDict):
    success: Literal[True]
    #: The newest task first. Lessons that say nothing (none, n/a, -) are left out.
    lessons: list[Lesson]
    #: How many completed tasks this call has examined: at most 10,000.
    looked: int
    #: Send this value as `cursor` to examine older tasks; null when all tasks have been examined.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskOutputAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The attempt: the epoch of the lease.
    attempt: int
    #: Where the next piece begins.
    next_offset: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskGetOutputAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The attempt: the epoch of its lease. In a query: if left out, the newest attempt with output; if this
    #: attempt has none, the next attempt with output. In a response null: no attempt has output.
    attempt: int | None
    #: The offset of the first byte of `data`.
    offset: int
    #: The text from `offset` on: at most 256 KiB, up to a part that is no longer kept.
    data: str
    #: The offset to read from next.
    next_offset: int
    #: How many bytes between `from` and `offset` are no longer kept.
    dropped: int
    #: The number of bytes.
    size: int
    #: Whether this attempt sends no more; without an attempt: whether the task is finished.
    ended: bool
    #: The attempts whose output is kept, oldest first.
    attempts: list[OutputAttempt]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskAskAnswer(TypedDict):
    success: Literal[True]
    #: The question.
    question: Question
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskAnswerAnswer(TypedDict):
    success: Literal[True]
    #: The question.
    question: Question
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskGetQuestionsAnswer(TypedDict):
    success: Literal[True]
    #: The questions of the task, oldest first.
    questions: list[Question]
    #: How many questions the task has.
    total: int
    #: Grows with each question that is asked, answered or timed out.
    version: int
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class QuestionsAnswer(TypedDict):
    success: Literal[True]
    #: The open questions, the most urgent first, with the title and the creator of their tasks.
    questions: list[OpenQuestion]
    #: How many are open, counted up to 10,000.
    total: int
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class ReviewsAnswer(TypedDict):
    success: Literal[True]
    #: The results that wait, the most urgent first.
    reviews: list[PendingReview]
    #: The total number.
    total: int
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class TaskGetExplainAnswer(TypedDict):
    success: Literal[True]
    #: Whether the task may be handed out to a node that fits.
    ready: bool
    #: All reasons; the last one of a task that is ready is `in_line`.
    reasons: list[Reason]
    #: The position of the task in its lane, up to 1,001; null if the task is not ready.
    position: int | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class StatsTypesAnswerFree(TypedDict):
    """How many open tasks nothing holds back: as many as task/list lists with `held=none`."""

    #: The maximum number to return.
    count: int
    #: False: there may be more.
    exact: bool


class StatsTypesAnswer(TypedDict):
    success: Literal[True]
    #: When the tasks were counted: at most 2 s ago.
    at: str
    #: The 100 types with the most tasks, the type with the most first.
    types: list[TypeStats]
    #: How many other types there are.
    others: int
    #: What holds open tasks back, the most tasks first.
    held: list[HeldStats]
    #: How many open tasks nothing holds back: as many as task/list lists with `held=none`.
    free: StatsTypesAnswerFree
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class StatsFailuresAnswerByNode(TypedDict):
    #: The id of the node.
    node_id: str
    #: How many tasks failed at this node.
    count: int
    #: How many attempts failed at this node, as the `attempts` of tasks count them: also of tasks that others
    #: completed.
    attempts: int


class StatsFailuresAnswer(TypedDict):
    success: Literal[True]
    #: The 50 largest groups of failed tasks, the largest first.
    failures: list[FailureGroup]
    #: The 50 nodes at which the most attempts failed, of the newest 10,000 of each kind.
    by_node: list[StatsFailuresAnswerByNode]
    #: How many failed tasks were examined.
    total: int
    #: False: more tasks have failed, because one call examines the newest 10,000.
    exact: bool
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class MessageSendAnswer(TypedDict):
    success: Literal[True]
    #: The id of the message.
    message_id: str
    #: The transport of messages: `sqlite`, `postgresql` or `redis`.
    transport: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class MessageReceiveAnswer(TypedDict):
    success: Literal[True]
    #: The maximum number to return.
    count: int
    #: The messages.
    messages: list[ReceivedMessage]
    #: The transport of messages: `sqlite`, `postgresql` or `redis`.
    transport: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class MessageBroadcastAnswer(TypedDict):
    success: Literal[True]
    #: The recipients of the broadcast.
    receivers: list[str]
    #: The id of the message.
    message_id: str
    #: The transport of messages: `sqlite`, `postgresql` or `redis`.
    transport: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class MessageAckAnswer(TypedDict):
    success: Literal[True]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class MessageHistoryAnswer(TypedDict):
    success: Literal[True]
    #: The maximum number to return.
    count: int
    #: The messages.
    messages: list[HistoryMessage]
    #: The transport of messages: `sqlite`, `postgresql` or `redis`.
    transport: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class MessageParkedAnswerByNode(TypedDict):
    #: The id of the node.
    node_id: str
    #: How many messages of the node are parked.
    count: int


class MessageParkedAnswer(TypedDict):
    success: Literal[True]
    #: The messages.
    messages: list[HistoryMessage]
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: How many parked messages there are; of all nodes counted up to 100,000.
    total: int
    #: How many pages there are.
    pages: int
    #: Only without `node_id`: the 50 nodes with the most parked messages.
    by_node: NotRequired[list[MessageParkedAnswerByNode]]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class MessageRedriveAnswer(TypedDict):
    success: Literal[True]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class AgentMessagesAnswer(TypedDict):
    success: Literal[True]
    #: The maximum number to return.
    count: int
    #: The messages.
    messages: list[HistoryMessage]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NotePutAnswer(TypedDict):
    success: Literal[True]
    #: The note as it is now.
    note: NoteHead
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NoteGetAnswer(TypedDict):
    success: Literal[True]
    #: The note.
    note: Note
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NoteListAnswer(TypedDict):
    success: Literal[True]
    #: The notes by key. A page of a search may have fewer than `per_page` although `next_cursor` continues.
    notes: list[NoteHead]
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NoteSearchAnswer(TypedDict):
    success: Literal[True]
    #: The notes by key. A page of a search may have fewer than `per_page` although `next_cursor` continues.
    notes: list[FoundNote]
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class NoteDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The note that was deleted.
    note: NoteHead
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LeaseAcquireAnswer(TypedDict):
    success: Literal[True]
    #: The lease.
    lease: AdvisoryLease
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LeaseRenewAnswer(TypedDict):
    success: Literal[True]
    #: The lease.
    lease: AdvisoryLease
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LeaseReleaseAnswer(TypedDict):
    success: Literal[True]
    #: How many leases ended: 0 for a repeat.
    released: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LeaseListAnswer(TypedDict):
    success: Literal[True]
    #: The leases, oldest first.
    leases: list[AdvisoryLease]
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class SigninAnswer(TypedDict):
    success: Literal[True]
    #: LUX that this call paid.
    lux_earned: float
    #: Whether the node had already signed in on this day (UTC).
    already_signed_in: bool
    #: The sum of the node's ledger entries.
    lux_balance: float
    #: The next midnight in UTC.
    next_signin_at: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LuxLedgerAnswer(TypedDict):
    success: Literal[True]
    #: The entries.
    entries: list[LedgerEntry]
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int
    #: How many pages there are.
    pages: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LuxTopAnswerNode(TypedDict):
    #: The id of the node.
    node_id: str
    #: The LUX that the node has earned since then, including daily bonuses.
    lux_earned: float
    #: How many ledger entries the node has since then.
    entries: int


class LuxTopAnswer(TypedDict):
    success: Literal[True]
    #: The 50 nodes that earned the most, the most first.
    nodes: list[LuxTopAnswerNode]
    #: False: there are more entries, because one call examines the newest 200,000.
    exact: bool
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LuxEntriesAnswer(TypedDict):
    success: Literal[True]
    #: The entries.
    entries: list[LedgerEntry]
    #: The newest entry of the ledger.
    head: LedgerHead
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LuxHeadAnswer(TypedDict):
    success: Literal[True]
    #: The newest entry of the ledger.
    head: LedgerHead
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class GroupListAnswerGroupByStatus(TypedDict):
    """How many tasks there are of each status."""

    #: How many of the tasks are open or assigned.
    pending: NotRequired[int]
    #: How many of the tasks are completed.
    completed: int
    #: How many of the tasks have failed.
    failed: int
    #: How many of the tasks are open.
    open: NotRequired[int]
    #: How many of the tasks are assigned.
    assigned: NotRequired[int]


class GroupListAnswerGroup(TypedDict):
    #: The name of the group of tasks; NAME/NODE of a group of a node's keys.
    group: str
    #: Whether no task of the group is unfinished.
    done: bool
    #: The total number.
    total: int
    #: How many tasks of the group have not ended: open and assigned tasks, and results that wait for a
    #: review.
    unfinished: int
    #: How many completed tasks of the group wait for their review; only if there are any.
    in_review: NotRequired[int]
    #: How many tasks were cancelled; of a group also those that expired, which `by_status.failed` leaves out.
    cancelled: NotRequired[int]
    #: How many tasks there are of each status.
    by_status: GroupListAnswerGroupByStatus
    #: When the first task of the group was created.
    first_created_at: str
    #: When the last task of the group was created.
    last_created_at: str
    #: When a task of the group last changed.
    last_updated_at: str
    #: The rewards of all tasks of the group.
    lux_reward: float
    #: What the completed tasks of the group have paid; a task that waits for its review has paid nothing.
    lux_paid: float


class GroupListAnswer(TypedDict):
    success: Literal[True]
    #: The groups, by name.
    groups: list[GroupListAnswerGroup]
    #: Send this value as `cursor` to get the next groups; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class GroupGetAnswerByStatus(TypedDict):
    """How many tasks there are of each status."""

    #: How many of the tasks are open or assigned.
    pending: NotRequired[int]
    #: How many of the tasks are completed.
    completed: int
    #: How many of the tasks have failed.
    failed: int
    #: How many of the tasks are open.
    open: NotRequired[int]
    #: How many of the tasks are assigned.
    assigned: NotRequired[int]


class GroupGetAnswerFailure(TypedDict):
    #: The id of the task.
    task_id: str
    #: What to do, in one line.
    title: str
    #: The status of the task. task/retry opens a `failed` task again.
    status: Literal["open", "assigned", "completed", "failed", "pending"]
    #: The node that holds the task, or has completed it.
    assigned_node: str | None
    #: The last note of the node that holds the task.
    progress: str | None
    #: Why the last attempt, or the task, failed.
    failure: Failure | None
    #: When the record last changed.
    updated_at: str


class GroupGetAnswer(TypedDict):
    success: Literal[True]
    #: The name of the group of tasks; NAME/NODE of a group of a node's keys.
    group: str
    #: Whether no task of the group is unfinished.
    done: bool
    #: The total number.
    total: int
    #: How many tasks of the group have not ended: open and assigned tasks, and results that wait for a
    #: review.
    unfinished: int
    #: How many completed tasks of the group wait for their review; only if there are any.
    in_review: NotRequired[int]
    #: How many tasks were cancelled; of a group also those that expired, which `by_status.failed` leaves out.
    cancelled: NotRequired[int]
    #: How many tasks there are of each status.
    by_status: GroupGetAnswerByStatus
    #: When the first task of the group was created.
    first_created_at: str
    #: When the last task of the group was created.
    last_created_at: str
    #: When a task of the group last changed.
    last_updated_at: str
    #: The rewards of all tasks of the group.
    lux_reward: float
    #: What the completed tasks of the group have paid; a task that waits for its review has paid nothing.
    lux_paid: float
    #: What the tasks of the group have used, including deleted tasks; null: no worker has reported any usage.
    usage: Spending | None
    #: The last 20 failed tasks of the group, the newest first.
    failures: list[GroupGetAnswerFailure]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class GroupCancelAnswer(TypedDict):
    success: Literal[True]
    #: The name of the group of tasks; NAME/NODE of a group of a node's keys.
    group: str
    #: How many tasks were cancelled; of a group also those that expired, which `by_status.failed` leaves out.
    cancelled: int
    #: How many tasks are left, at most 100,000: repeat the call.
    left: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class GroupRetryAnswer(TypedDict):
    success: Literal[True]
    #: The name of the group of tasks; NAME/NODE of a group of a node's keys.
    group: str
    #: How many tasks were opened again.
    retried: int
    #: How many failed tasks the call did not examine, at most 100,000.
    left: int
    #: Send this value as `cursor` to examine the remaining tasks; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class SchedulePutTaskQuorum(TypedDict):
    """Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the maximum number of copies (`results` to 15); if left out, as many as make `results` a majority."""

    #: How many results must agree.
    results: int
    #: How many copies there are at most.
    of: NotRequired[int]
    #: What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
    #: pointers into the result.
    compare: NotRequired[str]


class SchedulePutTaskRequires(TypedDict):
    """What a node must have to get the task: all words in `capabilities`, and enough of each resource."""

    #: Words that must all be among the capabilities of the node.
    capabilities: NotRequired[str | Sequence[str]]
    #: Up to 16 amounts by name (at most 64 characters), rounded to three decimals.
    resources: NotRequired[Mapping[str, float]]


class SchedulePutTask(TypedDict):
    #: The name by which tasks after it need this one.
    ref: str
    #: The names of the tasks before it that it waits for.
    needs: NotRequired[Sequence[str]]
    #: As for task/create.
    on_dependency: NotRequired[Literal["fail", "run"]]
    #: The task as it is now.
    task: SchedulePutTaskTask


class SchedulePutTaskTaskQuorum(TypedDict):
    """Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the maximum number of copies (`results` to 15); if left out, as many as make `results` a majority."""

    #: How many results must agree.
    results: int
    #: How many copies there are at most.
    of: NotRequired[int]
    #: What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
    #: pointers into the result.
    compare: NotRequired[str]


class SchedulePutTaskTaskRequires(TypedDict):
    """What a node must have to get the task: all words in `capabilities`, and enough of each resource."""

    #: Words that must all be among the capabilities of the node.
    capabilities: NotRequired[str | Sequence[str]]
    #: Up to 16 amounts by name (at most 64 characters), rounded to three decimals.
    resources: NotRequired[Mapping[str, float]]


class SchedulePutTaskTask(TypedDict):
    """The task as it is now."""

    #: What to do, in one line.
    title: str
    #: What to do; at most 64 KiB of UTF-8.
    description: str
    #: The hub compares it with the capabilities of nodes. A task without a type fits every node.
    task_type: NotRequired[str]
    #: The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
    #: default); 2, `p2` or `low`; `p5` is background work.
    priority: NotRequired[Literal[0, 1, 2, "high", "medium", "low", "p0", "p1", "p2", "p5"]]
    #: LUX for the node that completes the task, with at most 6 decimals.
    lux_reward: NotRequired[float]
    #: The node that created the task; this node need not be registered.
    creator_node: NotRequired[str]
    #: Seconds until the task may be handed out.
    delay_s: NotRequired[float]
    #: Seconds that a node may hold the task without task/extend or task/complete.
    timeout_s: NotRequired[float]
    #: Seconds that one attempt may take in all, extended or not; then the attempt has timed out.
    max_run_s: NotRequired[float]
    #: Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that were
    #: created with it.
    retain_s: NotRequired[float]
    #: Who checks the result before the reward is paid: `creator` (without a creator, any node except the
    #: worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for another
    #: node.
    review: NotRequired[str]
    #: Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out.
    review_within_s: NotRequired[float]
    #: What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`.
    on_review_timeout: NotRequired[Literal["pay", "reject"]]
    #: Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the maximum
    #: number of copies (`results` to 15); if left out, as many as make `results` a majority.
    quorum: NotRequired[SchedulePutTaskTaskQuorum]
    #: Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends the
    #: task permanently (kind `budget`). Null: no limit.
    max_cost_usd: NotRequired[float]
    #: The task fails after this many attempts; by default after 10 failures and timeouts.
    max_attempts: NotRequired[int]
    #: Seconds from a failed attempt until the task is open again (5 by default); doubles with each attempt,
    #: up to an hour.
    backoff_s: NotRequired[float]
    #: The name of the group of tasks; NAME/NODE of a group of a node's keys.
    group: NotRequired[str]
    #: The words by which to find the task; left out if there are none.
    tags: NotRequired[Sequence[str]]
    #: What a node must have to get the task: all words in `capabilities`, and enough of each resource.
    requires: NotRequired[SchedulePutTaskTaskRequires]
    #: The key whose limit (limit/set) applies to the task; if left out, the `task_type`.
    limit_key: NotRequired[str]
    #: The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left out,
    #: that of the request's header `traceparent`.
    traceparent: NotRequired[str]
    #: What tracing systems keep beside `traceparent`.
    tracestate: NotRequired[str]


class SchedulePutAnswer(TypedDict):
    success: Literal[True]
    #: The name of the schedule; replaces a schedule of this name.
    name: str
    #: The schedule.
    schedule: Schedule
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class ScheduleListAnswer(TypedDict):
    success: Literal[True]
    #: The schedules, by name.
    schedules: list[Schedule]
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int
    #: How many pages there are.
    pages: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class ScheduleRunAnswer(TypedDict):
    success: Literal[True]
    #: The id of the task.
    task_id: str
    #: The task as it is now.
    task: Task
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class ScheduleDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The name of the schedule.
    name: str
    #: The schedule.
    schedule: Schedule
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class WebhookPutAnswer(TypedDict):
    success: Literal[True]
    #: The name of the webhook; replaces a webhook of this name.
    name: str
    #: The webhook.
    webhook: Webhook
    #: Signs the messages: `whsec_` and base64; with the format `ntfy`, an access token. If left out, the hub
    #: makes a secret for a new webhook; the response has the secret only if the hub made it.
    secret: NotRequired[str]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class WebhookListAnswer(TypedDict):
    success: Literal[True]
    #: The webhooks, by name.
    webhooks: list[Webhook]
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int
    #: How many pages there are.
    pages: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class WebhookTestAnswer(TypedDict):
    success: Literal[True]
    #: The name of the webhook.
    name: str
    #: Whether the receiver returned a status of 200 to 299.
    delivered: bool
    #: The status of the receiver's response; null: there was none.
    status: int | None
    #: Why the message was not delivered.
    error: str | None
    #: How long the request took, in milliseconds.
    ms: float
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class WebhookResumeAnswer(TypedDict):
    success: Literal[True]
    #: The name of the webhook.
    name: str
    #: The webhook.
    webhook: Webhook
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class WebhookDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The name of the webhook.
    name: str
    #: The webhook.
    webhook: Webhook
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class UsageAnswerUsage(TypedDict):
    #: Tokens that the model read.
    input_tokens: int
    #: Tokens that the model wrote.
    output_tokens: int
    #: How many of the input tokens came from a cache.
    cached_tokens: int
    #: The sum of the known costs; null if no cost is known.
    cost_usd: float | None
    #: How many reports the sum has.
    reports: int
    #: How many of the reports had no `cost_usd`.
    without_cost: int
    #: The node, creator, type, model, group or day; null for tasks without a creator or a type.
    name: str | None


class UsageAnswer(TypedDict):
    success: Literal[True]
    #: What is summed up: `day` if left out.
    by: str
    #: The first day, in UTC; 29 days before `until` if left out. At most 366 days.
    since: str
    #: The last day, in UTC; today if left out.
    until: str
    #: A sum for each name, the most expensive first; of days the newest first.
    usage: list[UsageAnswerUsage]
    #: The sum of all names.
    all: Spending
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int
    #: How many pages there are.
    pages: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class UsageVoidAnswer(TypedDict):
    success: Literal[True]
    #: The id of the node.
    node_id: str
    #: The day in UTC; today if left out.
    day: str
    #: What was taken off the sums.
    voided: Spending
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class BudgetSetAnswer(TypedDict):
    success: Literal[True]
    #: The budget, and what is spent of the budget.
    budget: Budget
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class BudgetListAnswer(TypedDict):
    success: Literal[True]
    #: All budgets, by scope and value.
    budgets: list[Budget]
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int
    #: How many pages there are.
    pages: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class BudgetDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The budget, and what is spent of the budget.
    budget: Budget
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class HubPauseAnswer(TypedDict):
    success: Literal[True]
    #: What is paused.
    pause: Pause
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class HubResumeAnswer(TypedDict):
    success: Literal[True]
    #: What is paused.
    pause: Pause
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class HubPausesAnswer(TypedDict):
    success: Literal[True]
    #: What is paused, by scope and value.
    pauses: list[Pause]
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int
    #: How many pages there are.
    pages: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LimitSetAnswer(TypedDict):
    success: Literal[True]
    #: The limit, and how much of it is used.
    limit: Limit
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LimitListAnswer(TypedDict):
    success: Literal[True]
    #: All limits and holds, by key.
    limits: list[Limit]
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int
    #: How many pages there are.
    pages: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LimitDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The limit before the deletion.
    limit: Limit
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class LimitHoldAnswer(TypedDict):
    success: Literal[True]
    #: The limit of the key, or only its hold.
    limit: Limit
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class KeyListAnswer(TypedDict):
    success: Literal[True]
    #: The keys, including the two of the first start; without `page` and `per_page` all of them.
    keys: list[Key]
    #: The number of the page, from 1.
    page: int
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int
    #: How many pages there are.
    pages: int
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class KeyAddAnswer(TypedDict):
    success: Literal[True]
    #: A name that no key has or had.
    name: str
    #: The secret of the new key. The hub does not store the secret and cannot show it again.
    secret: str
    #: The key.
    key: Key
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class KeyRevokeAnswer(TypedDict):
    success: Literal[True]
    #: The name of the key.
    name: str
    #: The key.
    key: Key
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class FileListAnswer(TypedDict):
    success: Literal[True]
    #: The files.
    files: list[FileRecord]
    #: The number of the page, from 1.
    page: int | None
    #: Rows on a page; above 50 is read as 50.
    per_page: int
    #: The total number.
    total: int | None
    #: How many pages there are.
    pages: int | None
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class FileDownloadUrlAnswer(TypedDict):
    success: Literal[True]
    #: A path that downloads the file without a secret until `expires_at`.
    url: str
    #: The method of the request that the URL is for.
    method: Literal["GET", "POST"]
    #: When the URL stops working.
    expires_at: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class FileUploadUrlAnswer(TypedDict):
    success: Literal[True]
    #: A path that takes one file without a secret until `expires_at`, as multipart form data.
    url: str
    #: The method of the request that the URL is for.
    method: Literal["GET", "POST"]
    #: When the URL stops working.
    expires_at: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class FileDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The id of the file.
    file_id: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class InvitationCreateAnswer(TypedDict):
    success: Literal[True]
    #: The invitation.
    invitation: Invitation
    #: The argument of `luxhub join`: the URL, the token and the hash. The hub cannot show the line again.
    line: str
    #: The hub's URL in the line. If a request has no `url`, the hub chooses one of its addresses.
    url: str
    #: Other URLs at which the hub may be reached.
    other_urls: list[str]
    #: The SHA-256 of the public key of the hub's own authority, in base64url; null: nothing is pinned.
    pin: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class InvitationListAnswer(TypedDict):
    success: Literal[True]
    #: The invitations, oldest first.
    invitations: list[Invitation]
    #: Send this value as `cursor` to get the next page; null at the end.
    next_cursor: str | None
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class InvitationDeleteAnswer(TypedDict):
    success: Literal[True]
    #: The invitation.
    invitation_id: str
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class StatusAnswerPaused(TypedDict):
    #: What is paused: the whole hub, or a type, a limit key or a creator of tasks.
    scope: Literal["hub", "type", "limit_key", "creator"]
    #: The type, the limit key or the creator; null: the hub, or tasks without a type.
    value: str | None


class StatusAnswerStorage(TypedDict):
    """How much space the hub's data takes."""

    #: The size of the database, at most 10 s old.
    database_bytes: int
    #: The bytes of all files.
    files_bytes: int
    #: Tasks that are completed or have failed.
    finished_tasks: int
    #: Free space on the disk of the data directory; null if the database is on another machine.
    free_bytes: int | None
    #: What to do, when the database and the files take half of the disk; else null.
    warning: str | None


class StatusAnswerCopyStandby(TypedDict):
    #: The name of the standby.
    name: str
    #: Where it listens; null: it has not said so.
    url: str | None
    #: Whether it follows.
    following: bool
    #: How many entries it lacks.
    lag_entries: int
    #: The age of the oldest entry that it lacks, in seconds: what may be lost.
    lag_s: float
    #: Since when it follows, or does not; null: it never did.
    since: str | None
    #: Why it does not follow, as far as this hub knows.
    fault: str | None


class StatusAnswerCopy(TypedDict):
    """The second copy of the hub; only if there is one."""

    #: `first`: it accepts writes; `standby`: a copy, which answers reads; `superseded`: its standby was
    #: promoted.
    role: Literal["first", "standby", "superseded"]
    #: One more than the promotions so far.
    term: int
    #: The number of the last entry of the change log; null while none is kept.
    entry: int | None
    #: The hub that accepts writes, if it is another one.
    hub: str | None
    #: The copies that follow this hub; of a standby, the standby itself.
    standbys: list[StatusAnswerCopyStandby]


class StatusAnswer(TypedDict):
    success: Literal[True]
    #: `degraded` while the hub cannot write.
    status: Literal["ok", "degraded"]
    #: The version of the specification that the variant follows.
    version: Literal["1.5", "1.0"]
    #: Seconds since the hub started.
    uptime: float
    #: How many nodes are registered.
    nodes_count: int
    #: How many tasks there are.
    tasks_count: int
    #: The program and its version.
    software: str
    #: What people call this hub (`--name`); null for a hub without a name.
    name: str | None
    #: The variant of the response.
    variant: Literal["A", "B"]
    #: The transport of messages: `sqlite`, `postgresql` or `redis`.
    transport: str
    #: What is paused; left out if nothing is.
    paused: NotRequired[list[StatusAnswerPaused]]
    #: How much space the hub's data takes.
    storage: StatusAnswerStorage
    #: The second copy of the hub; only if there is one.
    copy: NotRequired[StatusAnswerCopy]
    #: How many webhooks are suspended; only if there are any.
    webhooks_suspended: NotRequired[int]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class StatsMinutesAnswer(TypedDict):
    success: Literal[True]
    #: How many seconds each entry takes: 60, 600 or 3,600.
    step_s: int
    #: The minutes, oldest first.
    minutes: list[Minute]
    #: The sum of the entries.
    total: MinutesTotal
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class PgDiagnosticAnswer(TypedDict):
    success: Literal[True]
    #: The engine of the store: `sqlite` or `postgresql`.
    engine: Literal["sqlite", "postgresql"]
    #: Whether the store responds.
    connected: bool
    #: The duration of a read, in milliseconds.
    latency_ms: float | None
    #: The version of the store's engine.
    engine_version: str | None
    #: How large the database is.
    size_bytes: int | None
    #: The version of the schema.
    migration: int | None
    #: How many writes wait for their commit; each request of a batch counts.
    queued: int | None
    #: What else the engine reports.
    details: dict[str, str | float | bool]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class BatchedAnswer(TypedDict):
    #: The status of the response, as if the request had been sent alone.
    status: int
    #: The body of the response.
    body: dict[str, Any]


class BatchAnswer(TypedDict):
    success: Literal[True]
    #: The responses, in the order of the requests.
    answers: list[BatchedAnswer]
    #: The first fields of the request that nothing has read, with dots; only if there are any. An ignored
    #: field may be misspelt.
    ignored: NotRequired[list[str]]


class BatchRequest(TypedDict):
    #: The path of a POST of JSON without `/api/v1/`, such as `task/claim`.
    path: str
    #: The body of the request.
    body: Mapping[str, Any]
    #: Of a task/create: a name for the new task. Later requests of the batch write `{"$ref": …}` in place of
    #: its id.
    ref: NotRequired[str]


class Nodes(_Resource):
    def register(
        self,
        node_id: str,
        name: str,
        *,
        host: str | None = None,
        port: int | None = None,
        capabilities: str | Sequence[str] | None = None,
        resources: Mapping[str, float] | None = None,
        max_tasks: int | None = None,
        auto_assign: bool | None = None,
        options: CallOptions | None = None,
    ) -> NodeRegisterAnswer:
        """Registers a node, or updates it, and puts it online.

        node_id: The id that the node chooses: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.
        name: The name that people see.
        host: Where people can reach the node; not used by the hub.
        port: Where people can reach the node; not used by the hub.
        capabilities: The task types that the node takes; a node without any takes all. Comma-separated, or an
            array.
        resources: What the node has, as up to 16 amounts by name (at most 64 characters), rounded to three
            decimals; tasks may require a part of each.
        max_tasks: The number of unfinished tasks up to which the hub hands open tasks to the node; null: no
            limit.
        auto_assign: Whether the balancer may assign tasks to the node.
        """
        fields = {
            "node_id": node_id,
            "name": name,
            "host": host,
            "port": port,
            "capabilities": capabilities,
            "resources": resources,
            "max_tasks": max_tasks,
            "auto_assign": auto_assign,
        }
        return cast("NodeRegisterAnswer", self._call("node/register", fields, options))

    def heartbeat(self, node_id: str, *, options: CallOptions | None = None) -> NodeHeartbeatAnswer:
        """Keeps a node online; returns the number of its tasks and messages.

        node_id: The id of the node.
        """
        fields = {"node_id": node_id}
        return cast("NodeHeartbeatAnswer", self._call("node/heartbeat", fields, options))

    def leave(self, node_id: str, *, options: CallOptions | None = None) -> NodeLeaveAnswer:
        """Puts a node offline at once and gives its tasks back.

        node_id: The id of the node.
        """
        fields = {"node_id": node_id}
        return cast("NodeLeaveAnswer", self._call("node/leave", fields, options))

    def drain(self, node_id: str, drain: bool, *, options: CallOptions | None = None) -> NodeDrainAnswer:
        """Drains a node, so that it gets no new tasks, or ends a drain.

        node_id: The id of the node.
        drain: Whether the node drains: a draining node finishes its tasks and gets no new tasks.
        """
        fields = {"node_id": node_id, "drain": drain}
        return cast("NodeDrainAnswer", self._call("node/drain", fields, options))

    def delete(self, node_id: str, *, options: CallOptions | None = None) -> NodeDeleteAnswer:
        """Deletes a node; its tasks are open again, its ledger and messages stay.

        node_id: The id of the node.
        """
        fields = {"node_id": node_id}
        return cast("NodeDeleteAnswer", self._call("node/delete", fields, options))

    def list(
        self,
        *,
        status: Literal["online", "draining", "offline"] | None = None,
        q: str | None = None,
        capability: str | None = None,
        order: Literal["id", "busy", "lux"] | None = None,
        tasks: Literal["0", "1", "true", "false"] | None = None,
        page: int | None = None,
        per_page: int | None = None,
        cursor: str | None = None,
        options: CallOptions | None = None,
    ) -> NodeListAnswer:
        """All nodes, or a page; filters by state, name and capability.

        All nodes; with any of the fields, a page.

        status: Only nodes in this state; `online` includes draining nodes.
        q: Only nodes whose node_id, name or host begins with this, ignoring case.
        capability: Only nodes that take tasks of this type: nodes with this capability, or without any.
        order: `id` (the default); `busy`: most unfinished tasks first, offline nodes last; `lux`: highest
            balance first.
        tasks: In the query `1`: the response also has the first 3 tasks that each node of the page holds, the
            oldest first.
        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        cursor: The `next_cursor` of the previous page, with the same filters and order and without `page`.
        """
        fields = {
            "status": status,
            "q": q,
            "capability": capability,
            "order": order,
            "tasks": tasks,
            "page": page,
            "per_page": per_page,
            "cursor": cursor,
        }
        return cast("NodeListAnswer", self._call("node/list", fields, options))

    def get(self, node_id: str, *, options: CallOptions | None = None) -> NodeGetAnswer:
        """One node.

        node_id: The id of the node.
        """
        fields = {"node_id": node_id}
        return cast("NodeGetAnswer", self._call("node/{node_id}", fields, options))

    def stats(self, *, options: CallOptions | None = None) -> StatsNodesAnswer:
        """The number of nodes by status, and the sum of their LUX."""
        return cast("StatsNodesAnswer", self._call("stats/nodes", None, options))


class Tasks(_Resource):
    def create(
        self,
        title: str,
        description: str,
        *,
        task_type: str | None = None,
        priority: Literal[0, 1, 2, "high", "medium", "low", "p0", "p1", "p2", "p5"] | None = None,
        lux_reward: float | None = None,
        creator_node: str | None = None,
        for_node: str | None = None,
        files: Sequence[str] | None = None,
        depends_on: Sequence[str] | None = None,
        on_dependency: Literal["fail", "run"] | None = None,
        unique_key: str | None = None,
        unique_for_s: float | None = None,
        delay_s: float | None = None,
        not_before: str | None = None,
        expires_at: str | None = None,
        timeout_s: float | None = None,
        max_run_s: float | None = None,
        retain_s: float | None = None,
        review: str | None = None,
        review_within_s: float | None = None,
        on_review_timeout: Literal["pay", "reject"] | None = None,
        quorum: TaskCreateQuorum | None = None,
        max_cost_usd: float | None = None,
        max_attempts: int | None = None,
        backoff_s: float | None = None,
        group: str | None = None,
        tags: Sequence[str] | None = None,
        requires: TaskCreateRequires | None = None,
        limit_key: str | None = None,
        traceparent: str | None = None,
        tracestate: str | None = None,
        options: CallOptions | None = None,
    ) -> TaskCreateAnswer:
        """Creates a task; on B the hub assigns it at once if a node is available.

        title: What to do, in one line.
        description: What to do; at most 64 KiB of UTF-8.
        task_type: The hub compares it with the capabilities of nodes. A task without a type fits every node.
        priority: The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or
            `medium` (the default); 2, `p2` or `low`; `p5` is background work.
        lux_reward: LUX for the node that completes the task, with at most 6 decimals.
        creator_node: The node that created the task; this node need not be registered.
        for_node: Assigns the task to this node, which must be online. The task must be ready. If the node
            gives the task back or goes offline, other nodes may take the task. With a key of another node the
            task waits in line for this node.
        files: The ids of uploaded files that belong to no task: the files become inputs of the task in the
            same commit.
        depends_on: The ids of the tasks that must be completed first.
        on_dependency: `fail` (if left out): the task fails when a task in `depends_on` fails or is deleted.
            `run`: the task starts when all tasks in `depends_on` have ended: completed, failed or deleted.
        unique_key: While an unfinished task has this key, task/create makes no other task with the key, and
            returns the existing task (`deduplicated`).
        unique_for_s: Seconds from the creation for which the task holds its `unique_key`, finished or not.
        delay_s: Seconds until the task may be handed out.
        not_before: The task is not handed out before this time.
        expires_at: If the task is not completed by this time, the task fails.
        timeout_s: Seconds that a node may hold the task without task/extend or task/complete.
        max_run_s: Seconds that one attempt may take in all, extended or not; then the attempt has timed out.
        retain_s: Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on
            tasks that were created with it.
        review: Who checks the result before the reward is paid: `creator` (without a creator, any node except
            the worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for
            another node.
        review_within_s: Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left
            out.
        on_review_timeout: What happens when nobody has reviewed the result in time: `pay` (if left out) or
            `reject`.
        quorum: Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is
            the maximum number of copies (`results` to 15); if left out, as many as make `results` a majority.
        max_cost_usd: Dollars that all attempts of the task together may cost; the attempt that exceeds this
            amount ends the task permanently (kind `budget`). Null: no limit.
        max_attempts: The task fails after this many attempts; by default after 10 failures and timeouts.
        backoff_s: Seconds from a failed attempt until the task is open again (5 by default); doubles with
            each attempt, up to an hour.
        group: The group that the task joins. A group exists from its first task on. With a key that is bound
            to a node, the group is NAME/NODE.
        tags: Up to 16 words by which to find the task, without commas.
        requires: What a node must have to get the task: all words in `capabilities`, and enough of each
            resource.
        limit_key: The key whose limit (limit/set) applies to the task; if left out, the `task_type`.
        traceparent: The trace to which the task belongs (W3C Trace Context), which workers and webhooks get;
            if left out, that of the request's header `traceparent`.
        tracestate: What tracing systems keep beside `traceparent`.
        """
        fields = {
            "title": title,
            "description": description,
            "task_type": task_type,
            "priority": priority,
            "lux_reward": lux_reward,
            "creator_node": creator_node,
            "for_node": for_node,
            "files": files,
            "depends_on": depends_on,
            "on_dependency": on_dependency,
            "unique_key": unique_key,
            "unique_for_s": unique_for_s,
            "delay_s": delay_s,
            "not_before": not_before,
            "expires_at": expires_at,
            "timeout_s": timeout_s,
            "max_run_s": max_run_s,
            "retain_s": retain_s,
            "review": review,
            "review_within_s": review_within_s,
            "on_review_timeout": on_review_timeout,
            "quorum": quorum,
            "max_cost_usd": max_cost_usd,
            "max_attempts": max_attempts,
            "backoff_s": backoff_s,
            "group": group,
            "tags": tags,
            "requires": requires,
            "limit_key": limit_key,
            "traceparent": traceparent,
            "tracestate": tracestate,
        }
        return cast("TaskCreateAnswer", self._call("task/create", fields, options))

    def next(
        self,
        node_id: str,
        *,
        wait: float | None = None,
        task_types: Sequence[str] | None = None,
        resume: bool | None = None,
        options: CallOptions | None = None,
    ) -> TaskNextAnswer:
        """Hands a worker its next task, and may wait for one.

        Waits for `wait` seconds, however long that is.

        node_id: The id of the node.
        wait: Seconds to wait for a task; 0, the default, returns at once.
        task_types: Only open tasks of these types; tasks that are already assigned to the node are handed out
            in any case.
        resume: Whether to hand out first, again and with a new epoch, the tasks that the node had started and
            not finished. Each time counts in `restarts` and, if the task has `max_attempts`, as an attempt.
        """
        fields = {"node_id": node_id, "wait": wait, "task_types": task_types, "resume": resume}
        return cast("TaskNextAnswer", self._call("task/next", fields, options))

    def assign(self, task_id: str, node_id: str, *, options: CallOptions | None = None) -> TaskAnswer:
        """Assigns an open task to a node.

        task_id: The id of the task.
        node_id: The id of the node.
        """
        fields = {"task_id": task_id, "node_id": node_id}
        return cast("TaskAnswer", self._call("task/assign", fields, options))

    def claim(self, task_id: str, node_id: str, *, options: CallOptions | None = None) -> TaskClaimAnswer:
        """A node claims an open task.

        task_id: The id of the task.
        node_id: The id of the node.
        """
        fields = {"task_id": task_id, "node_id": node_id}
        return cast("TaskClaimAnswer", self._call("task/claim", fields, options))

    def complete(
        self,
        task_id: str,
        node_id: str,
        result: Mapping[str, Any],
        *,
        epoch: int | None = None,
        usage: Sequence[TaskCompleteUsage] | None = None,
        options: CallOptions | None = None,
    ) -> TaskCompleteAnswer:
        """Completes a task with its result and pays its reward.

        task_id: The id of the task.
        node_id: The id of the node.
        result: The result of the work: three strings of at most 64 KiB each, and any additional properties,
            together at most 64 KiB of JSON.
        epoch: The epoch of the lease: any other than the current epoch returns 409 `stale_lease`.
        usage: What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails.
        """
        fields = {"task_id": task_id, "node_id": node_id, "result": result, "epoch": epoch, "usage": usage}
        return cast("TaskCompleteAnswer", self._call("task/complete", fields, options))

    def release(
        self,
        task_id: str,
        node_id: str,
        *,
        epoch: int | None = None,
        reason: str | None = None,
        checkpoint: Any | None = None,
        usage: Sequence[TaskReleaseUsage] | None = None,
        hold_s: float | None = None,
        options: CallOptions | None = None,
    ) -> TaskAnswer:
        """A node gives back a task that it holds.

        task_id: The id of the task.
        node_id: The id of the node.
        epoch: The epoch of the lease: any other than the current epoch returns 409 `stale_lease`.
        reason: The reason, which the event shows.
        checkpoint: What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint
            counts.
        usage: What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails.
        hold_s: Also holds the limit key of the task for this many seconds, as limit/hold does. At most 600
            with a key that is bound to a node.
        """
        fields = {
            "task_id": task_id,
            "node_id": node_id,
            "epoch": epoch,
            "reason": reason,
            "checkpoint": checkpoint,
            "usage": usage,
            "hold_s": hold_s,
        }
        return cast("TaskAnswer", self._call("task/release", fields, options))

    def fail(
        self,
        task_id: str,
        node_id: str,
        error: str,
        *,
        epoch: int | None = None,
        kind: Literal["failed", "stalled"] | None = None,
        retry: bool | None = None,
        checkpoint: Any | None = None,
        usage: Sequence[TaskFailUsage] | None = None,
        hold_s: float | None = None,
        options: CallOptions | None = None,
    ) -> TaskAnswer:
        """A node reports that its attempt at a task failed.

        task_id: The id of the task.
        node_id: The id of the node.
        error: What went wrong.
        epoch: The epoch of the lease: any other than the current epoch returns 409 `stale_lease`.
        kind: `stalled`: the attempt was ended because nothing was heard of it; `failed` if left out.
        retry: Whether the task may be tried again.
        checkpoint: What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint
            counts.
        usage: What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails.
        hold_s: Also holds the limit key of the task for this many seconds, as limit/hold does. At most 600
            with a key that is bound to a node.
        """
        fields = {
            "task_id": task_id,
            "node_id": node_id,
            "error": error,
            "epoch": epoch,
            "kind": kind,
            "retry": retry,
            "checkpoint": checkpoint,
            "usage": usage,
            "hold_s": hold_s,
        }
        return cast("TaskAnswer", self._call("task/fail", fields, options))

    def extend(
        self,
        task_id: str,
        node_id: str,
        *,
        epoch: int | None = None,
        note: str | None = None,
        checkpoint: Any | None = None,
        usage: Sequence[TaskExtendUsage] | None = None,
        options: CallOptions | None = None,
    ) -> TaskExtendAnswer:
        """Extends the lease of a task; can report progress, a checkpoint, usage.

        task_id: The id of the task.
        node_id: The id of the node.
        epoch: The epoch of the lease: any other than the current epoch returns 409 `stale_lease`.
        note: The progress of the work, which the task shows as `progress`.
        checkpoint: What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint
            counts.
        usage: What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails.
        """
        fields = {
            "task_id": task_id,
            "node_id": node_id,
            "epoch": epoch,
            "note": note,
            "checkpoint": checkpoint,
            "usage": usage,
        }
        return cast("TaskExtendAnswer", self._call("task/extend", fields, options))

    def retry(
        self,
        task_id: str,
        *,
        with_dependents: bool | None = None,
        keep_checkpoint: bool | None = None,
        max_cost_usd: float | None = None,
        options: CallOptions | None = None,
    ) -> TaskRetryAnswer:
        """Opens a failed task again; can also open its failed dependents.

        task_id: The id of the task.
        with_dependents: Also opens, in the same commit, the tasks that failed only because of this task: up
            to 250 tasks, the oldest first. If the task itself has not failed, it does not change.
        keep_checkpoint: False: the checkpoint of earlier attempts is removed. True if left out.
        max_cost_usd: Replaces the `max_cost_usd` of the task: needed if the task has already cost more.
        """
        fields = {
            "task_id": task_id,
            "with_dependents": with_dependents,
            "keep_checkpoint": keep_checkpoint,
            "max_cost_usd": max_cost_usd,
        }
        return cast("TaskRetryAnswer", self._call("task/retry", fields, options))

    def cancel(
        self,
        task_id: str,
        *,
        node_id: str | None = None,
        reason: str | None = None,
        options: CallOptions | None = None,
    ) -> TaskAnswer:
        """Cancels an unfinished task, which then fails.

        task_id: The id of the task.
        node_id: The node that cancels the task.
        reason: The reason, which the event shows.
        """
        fields = {"task_id": task_id, "node_id": node_id, "reason": reason}
        return cast("TaskAnswer", self._call("task/cancel", fields, options))

    def update(
        self,
        task_id: str,
        *,
        title: str | None = None,
        description: str | None = None,
        priority: Literal[0, 1, 2, "high", "medium", "low", "p0", "p1", "p2", "p5"] | None = None,
        lux_reward: float | None = None,
        not_before: str | None = None,
        expires_at: str | None = None,
        tags: Sequence[str] | None = None,
        limit_key: str | None = None,
        options: CallOptions | None = None,
    ) -> TaskAnswer:
        """Changes a task that nobody holds.

        task_id: The id of the task.
        title: What to do, in one line.
        description: What to do; at most 64 KiB of UTF-8.
        priority: The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or
            `medium` (the default); 2, `p2` or `low`; `p5` is background work.
        lux_reward: The new reward. To lower a reward, send the administrator key too.
        not_before: The task is not handed out before this time. A time in the past, or null: at once.
        expires_at: If the task is not completed by this time, the task fails; null: the task does not expire.
        tags: The new tags of the task, in place of all old tags; `[]`: none.
        limit_key: The key whose limit applies to the task; null: its `task_type`.
        """
        fields = {
            "task_id": task_id,
            "title": title,
            "description": description,
            "priority": priority,
            "lux_reward": lux_reward,
            "not_before": not_before,
            "expires_at": expires_at,
            "tags": tags,
            "limit_key": limit_key,
        }
        return cast("TaskAnswer", self._call("task/update", fields, options))

    def revoke(
        self,
        task_id: str,
        *,
        node_id: str | None = None,
        reason: str | None = None,
        options: CallOptions | None = None,
    ) -> TaskAnswer:
        """Takes a task back from its node, or gives it to another.

        task_id: The id of the task.
        node_id: The node that gets the task; if left out, the task is open again.
        reason: The reason, which the event shows.
        """
        fields = {"task_id": task_id, "node_id": node_id, "reason": reason}
        return cast("TaskAnswer", self._call("task/revoke", fields, options))

    def batch_assign(
        self,
        *,
        assignments: Sequence[TaskBatchAssignAssignment] | None = None,
        options: CallOptions | None = None,
    ) -> TaskBatchAssignAnswer:
        """A: assigns each task of a list; B: lets the balancer assign open tasks.

        assignments: The tasks and the nodes that get them.
        """
        fields = {"assignments": assignments}
        return cast("TaskBatchAssignAnswer", self._call("task/batch-assign", fields, options))

    def delete(self, task_id: str, *, options: CallOptions | None = None) -> TaskDeleteAnswer:
        """Deletes a task permanently.

        task_id: The id of the task.
        """
        fields = {"task_id": task_id}
        return cast("TaskDeleteAnswer", self._call("task/delete", fields, options))

    def list(
        self,
        *,
        status: Literal["open", "assigned", "pending", "completed", "failed", "in_review", "cancelled"] | None = None,
        node_id: str | None = None,
        creator_node: str | None = None,
        task_type: str | None = None,
        group: str | None = None,
        tag: str | None = None,
        failed_by: str | None = None,
        failure_kind: str | None = None,
        failure_group: str | None = None,
        failure_q: str | None = None,
        since: str | None = None,
        until: str | None = None,
        held: Literal["any", "none", "paused", "limit", "rate", "budget", "no_node", "nodes_offline", "nodes_draining", "depends_on", "question", "quorum", "not_before"] | None = None,
        q: str | None = None,
        order: Literal["created", "updated"] | None = None,
        page: int | None = None,
        per_page: int | None = None,
        cursor: str | None = None,
        options: CallOptions | None = None,
    ) -> TaskListAnswer:
        """Tasks, newest first; filters by state, node, type, title and more.

        status: Only tasks of this status, in the words of either variant; also `in_review` (completed, and
            the result waits for its review) and `cancelled` (failed, because it was cancelled or has
            expired).
        node_id: Only tasks that this node holds or has completed, or whose last attempt failed at this node.
        creator_node: Only tasks that were created with this `creator_node`.
        task_type: Only tasks of this type.
        group: Only tasks of this group.
        tag: Only tasks with this tag. One call examines 10,000 tasks; continue with next_cursor.
        failed_by: Only failed tasks whose last attempt failed at this node.
        failure_kind: Only tasks whose last failure is of this kind, or of one of several, comma-separated.
        failure_group: Only failed tasks of this group of stats/failures, the latest failure first, as with
            `order=updated`.
        failure_q: Words, each of which must begin a word of the failure's message: only failed tasks, the
            latest failure first.
        since: Only tasks whose `updated_at` is not before this time.
        until: Only tasks whose `updated_at` is before this time.
        held: Only open tasks that are held back: for `any` reason, or counted under this code in stats/types;
            `none`: only open tasks that nothing holds back.
        q: Words, each of which must begin a word of the title. One call examines 10,000 tasks; continue with
            next_cursor.
        order: `created` (if left out); `updated`: the last change first, which needs `status=failed` or
            `failed_by`.
        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        cursor: The `next_cursor` of the previous page, with the same filters and without `page`.
        """
        fields = {
            "status": status,
            "node_id": node_id,
            "creator_node": creator_node,
            "task_type": task_type,
            "group": group,
            "tag": tag,
            "failed_by": failed_by,
            "failure_kind": failure_kind,
            "failure_group": failure_group,
            "failure_q": failure_q,
            "since": since,
            "until": until,
            "held": held,
            "q": q,
            "order": order,
            "page": page,
            "per_page": per_page,
            "cursor": cursor,
        }
        return cast("TaskListAnswer", self._call("task/list", fields, options))

    def summaries(
        self,
        *,
        status: Literal["open", "assigned", "pending", "completed", "failed", "in_review", "cancelled"] | None = None,
        node_id: str | None = None,
        creator_node: str | None = None,
        task_type: str | None = None,
        group: str | None = None,
        tag: str | None = None,
        failed_by: str | None = None,
        failure_kind: str | None = None,
        failure_group: str | None = None,
        failure_q: str | None = None,
        since: str | None = None,
        until: str | None = None,
        held: Literal["any", "none", "paused", "limit", "rate", "budget", "no_node", "nodes_offline", "nodes_draining", "depends_on", "question", "quorum", "not_before"] | None = None,
        q: str | None = None,
        order: Literal["created", "updated"] | None = None,
        page: int | None = None,
        per_page: int | None = None,
        cursor: str | None = None,
        options: CallOptions | None = None,
    ) -> TaskListFieldsSummaryAnswer:
        """Tasks, newest first; filters by state, node, type, title and more.

        The tasks without their descriptions, results and other long texts.

        status: Only tasks of this status, in the words of either variant; also `in_review` (completed, and
            the result waits for its review) and `cancelled` (failed, because it was cancelled or has
            expired).
        node_id: Only tasks that this node holds or has completed, or whose last attempt failed at this node.
        creator_node: Only tasks that were created with this `creator_node`.
        task_type: Only tasks of this type.
        group: Only tasks of this group.
        tag: Only tasks with this tag. One call examines 10,000 tasks; continue with next_cursor.
        failed_by: Only failed tasks whose last attempt failed at this node.
        failure_kind: Only tasks whose last failure is of this kind, or of one of several, comma-separated.
        failure_group: Only failed tasks of this group of stats/failures, the latest failure first, as with
            `order=updated`.
        failure_q: Words, each of which must begin a word of the failure's message: only failed tasks, the
            latest failure first.
        since: Only tasks whose `updated_at` is not before this time.
        until: Only tasks whose `updated_at` is before this time.
        held: Only open tasks that are held back: for `any` reason, or counted under this code in stats/types;
            `none`: only open tasks that nothing holds back.
        q: Words, each of which must begin a word of the title. One call examines 10,000 tasks; continue with
            next_cursor.
        order: `created` (if left out); `updated`: the last change first, which needs `status=failed` or
            `failed_by`.
        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        cursor: The `next_cursor` of the previous page, with the same filters and without `page`.
        """
        fields = {
            "status": status,
            "node_id": node_id,
            "creator_node": creator_node,
            "task_type": task_type,
            "group": group,
            "tag": tag,
            "failed_by": failed_by,
            "failure_kind": failure_kind,
            "failure_group": failure_group,
            "failure_q": failure_q,
            "since": since,
            "until": until,
            "held": held,
            "q": q,
            "order": order,
            "page": page,
            "per_page": per_page,
            "cursor": cursor,
        }
        return cast("TaskListFieldsSummaryAnswer", self._call("task/list?fields=summary", fields, options))

    def count(
        self,
        *,
        status: Literal["open", "assigned", "pending", "completed", "failed", "in_review", "cancelled"] | None = None,
        node_id: str | None = None,
        creator_node: str | None = None,
        task_type: str | None = None,
        group: str | None = None,
        tag: str | None = None,
        failed_by: str | None = None,
        failure_kind: str | None = None,
        failure_group: str | None = None,
        failure_q: str | None = None,
        since: str | None = None,
        until: str | None = None,
        held: Literal["any", "none", "paused", "limit", "rate", "budget", "no_node", "nodes_offline", "nodes_draining", "depends_on", "question", "quorum", "not_before"] | None = None,
        q: str | None = None,
        options: CallOptions | None = None,
    ) -> TaskCountAnswer:
        """How many tasks match the filters of task/list.

        status: Only tasks of this status, in the words of either variant; also `in_review` (completed, and
            the result waits for its review) and `cancelled` (failed, because it was cancelled or has
            expired).
        node_id: Only tasks that this node holds or has completed, or whose last attempt failed at this node.
        creator_node: Only tasks that were created with this `creator_node`.
        task_type: Only tasks of this type.
        group: Only tasks of this group.
        tag: Only tasks with this tag. One call examines 10,000 tasks; continue with next_cursor.
        failed_by: Only failed tasks whose last attempt failed at this node.
        failure_kind: Only tasks whose last failure is of this kind, or of one of several, comma-separated.
        failure_group: Only failed tasks of this group of stats/failures, the latest failure first, as with
            `order=updated`.
        failure_q: Words, each of which must begin a word of the failure's message: only failed tasks, the
            latest failure first.
        since: Only tasks whose `updated_at` is not before this time.
        until: Only tasks whose `updated_at` is before this time.
        held: Only open tasks that are held back: for `any` reason, or counted under this code in stats/types;
            `none`: only open tasks that nothing holds back.
        q: Words, each of which must begin a word of the title. One call examines 10,000 tasks; continue with
            next_cursor.
        """
        fields = {
            "status": status,
            "node_id": node_id,
            "creator_node": creator_node,
            "task_type": task_type,
            "group": group,
            "tag": tag,
            "failed_by": failed_by,
            "failure_kind": failure_kind,
            "failure_group": failure_group,
            "failure_q": failure_q,
            "since": since,
            "until": until,
            "held": held,
            "q": q,
        }
        return cast("TaskCountAnswer", self._call("task/count", fields, options))

    def wait(
        self,
        task_ids: str,
        *,
        until: Literal["all", "any"] | None = None,
        wait: float | None = None,
        options: CallOptions | None = None,
    ) -> TaskWaitAnswer:
        """Waits until all, or any, of several tasks are completed or have failed.

        Waits for `wait` seconds, however long that is.

        task_ids: The ids of 1 to 100 tasks, comma-separated.
        until: `all` (the default) or `any`: which of the tasks must have ended.
        wait: Seconds to wait; 0, the default, returns at once.
        """
        fields = {"task_ids": task_ids, "until": until, "wait": wait}
        return cast("TaskWaitAnswer", self._call("task/wait", fields, options))

    def pull(
        self,
        node_id: str,
        *,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> TaskPullAnswer:
        """The open tasks that a node could claim, best first.

        node_id: The id of the node.
        limit: The maximum number to return.
        """
        fields = {"node_id": node_id, "limit": limit}
        return cast("TaskPullAnswer", self._call("task/pull", fields, options))

    def stats(self, *, options: CallOptions | None = None) -> TaskStatsAnswer:
        """Tasks counted by status, and the nodes that completed the most."""
        return cast("TaskStatsAnswer", self._call("task/stats", None, options))

    def get(
        self,
        task_id: str,
        *,
        wait: float | None = None,
        context: Literal["0", "1", "true", "false"] | None = None,
        options: CallOptions | None = None,
    ) -> TaskGetAnswer:
        """One task; may wait until it is completed or has failed.

        Waits for `wait` seconds, however long that is.

        task_id: The id of the task.
        wait: Seconds to wait until the task is completed or has failed.
        context: `1`: the response also has the `context` of the task.
        """
        fields = {"task_id": task_id, "wait": wait, "context": context}
        return cast("TaskGetAnswer", self._call("task/{task_id}", fields, options))

    def inputs(
        self,
        task_id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> TaskGetInputsAnswer:
        """The tasks on which a task depends, with their results and files.

        task_id: The id of the task.
        cursor: The `next_cursor` of the page before.
        limit: The maximum number to return.
        """
        fields = {"task_id": task_id, "cursor": cursor, "limit": limit}
        return cast("TaskGetInputsAnswer", self._call("task/{task_id}/inputs", fields, options))

    def graph(self, task_id: str, *, options: CallOptions | None = None) -> TaskGetGraphAnswer:
        """The dependencies of a task, in layers, and the tasks that wait for it.

        task_id: The id of the task.
        """
        fields = {"task_id": task_id}
        return cast("TaskGetGraphAnswer", self._call("task/{task_id}/graph", fields, options))

    def lessons(
        self,
        *,
        q: str | None = None,
        type: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> LessonsAnswer:
        """Lessons of completed tasks, newest first; filters by type and words.

        q: Words, each of which must begin a word of the lesson or of the title of its task.
        type: Only lessons of tasks of this `task_type`.
        cursor: The `next_cursor` of the page before.
        limit: The maximum number to return.
        """
        fields = {"q": q, "type": type, "cursor": cursor, "limit": limit}
        return cast("LessonsAnswer", self._call("lessons", fields, options))

    def output(
        self,
        task_id: str,
        node_id: str,
        offset: int,
        data: str,
        *,
        epoch: int | None = None,
        options: CallOptions | None = None,
    ) -> TaskOutputAnswer:
        """Appends output of a running task.

        The handler of a worker has `output`, which keeps the offsets.

        task_id: The id of the task.
        node_id: The id of the node.
        offset: The offset of the first byte of `data` in the output of this attempt, in bytes of UTF-8. A
            repeat of what was sent changes nothing.
        data: 1 to 65,536 bytes of text, without NUL.
        epoch: The epoch of the lease: any other than the current epoch returns 409 `stale_lease`.
        """
        fields = {"task_id": task_id, "node_id": node_id, "offset": offset, "data": data, "epoch": epoch}
        return cast("TaskOutputAnswer", self._call("task/output", fields, options))

    def read_output(
        self,
        task_id: str,
        *,
        attempt: int | None = None,
        from_: int | None = None,
        wait: float | None = None,
        options: CallOptions | None = None,
    ) -> TaskGetOutputAnswer:
        """The output of an attempt of a task; may wait for more.

        Waits for `wait` seconds, however long that is, for more output.

        task_id: The id of the task.
        attempt: The attempt: the epoch of its lease. In a query: if left out, the newest attempt with output;
            if this attempt has none, the next attempt with output. In a response null: no attempt has output.
        from_: The offset to read from: 0 if left out.
        wait: Seconds to wait until there is more, or the attempt or the task has ended.
        """
        fields = {"task_id": task_id, "attempt": attempt, "from": from_, "wait": wait}
        return cast("TaskGetOutputAnswer", self._call("task/{task_id}/output", fields, options))

    def ask(
        self,
        task_id: str,
        node_id: str,
        question: str,
        *,
        epoch: int | None = None,
        choices: Sequence[str] | None = None,
        schema: Any | None = None,
        within_s: float | None = None,
        park: bool | None = None,
        wait: float | None = None,
        options: CallOptions | None = None,
    ) -> TaskAskAnswer:
        """A node asks a person, or another agent, about a task that it holds.

        Waits for `wait` seconds, however long that is.

        task_id: The id of the task.
        node_id: The id of the node.
        question: What the worker wants to know.
        epoch: The epoch of the lease: any other than the current epoch returns 409 `stale_lease`.
        choices: Answers that the worker suggests; any other answer is possible too.
        schema: The JSON Schema (at most 8 KiB) of the answer that the worker expects. The hub shows the
            schema, but does not enforce it.
        within_s: Seconds until the question times out; a day if left out.
        park: Gives the task back in the same commit; this is not an attempt. The task is not ready while a
            question about it is open.
        wait: Seconds to wait for the answer; 0, the default, returns at once. The wait is no heartbeat.
        """
        fields = {
            "task_id": task_id,
            "node_id": node_id,
            "question": question,
            "epoch": epoch,
            "choices": choices,
            "schema": schema,
            "within_s": within_s,
            "park": park,
            "wait": wait,
        }
        return cast("TaskAskAnswer", self._call("task/ask", fields, options))

    def answer(
        self,
        task_id: str,
        question_id: str,
        answer: Any,
        *,
        node_id: str | None = None,
        options: CallOptions | None = None,
    ) -> TaskAnswerAnswer:
        """Answers a question of a task; the first answer counts.

        task_id: The id of the task.
        question_id: The id of the question.
        answer: The answer: any JSON but null, at most 16 KiB.
        node_id: The node that answers.
        """
        fields = {"task_id": task_id, "question_id": question_id, "answer": answer, "node_id": node_id}
        return cast("TaskAnswerAnswer", self._call("task/answer", fields, options))

    def questions(
        self,
        task_id: str,
        *,
        question_id: str | None = None,
        wait: float | None = None,
        since: int | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> TaskGetQuestionsAnswer:
        """The questions of a task with their answers; may wait until one changes.

        With `wait` it waits, at most 300 seconds, until one changes.

        task_id: The id of the task.
        question_id: Only this question: then `wait` ends when the question is answered or timed out.
        wait: Seconds to wait until a question is asked, answered or timed out; 0, the default, returns at
            once.
        since: The `version` that the caller knows: a wait ends at once if there is a newer version.
        cursor: The `next_cursor` of the page before.
        limit: The maximum number to return.
        """
        fields = {
            "task_id": task_id,
            "question_id": question_id,
            "wait": wait,
            "since": since,
            "cursor": cursor,
            "limit": limit,
        }
        return cast("TaskGetQuestionsAnswer", self._call("task/{task_id}/questions", fields, options))

    def open_questions(
        self,
        *,
        state: Literal["open"] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> QuestionsAnswer:
        """The open questions of all tasks, the most urgent first.

        state: Only `open`, which is also the default.
        cursor: The `next_cursor` of the page before.
        limit: The maximum number to return.
        """
        fields = {"state": state, "cursor": cursor, "limit": limit}
        return cast("QuestionsAnswer", self._call("questions", fields, options))

    def review(
        self,
        task_id: str,
        verdict: Literal["pass", "reject"],
        *,
        node_id: str | None = None,
        note: str | None = None,
        epoch: int | None = None,
        options: CallOptions | None = None,
    ) -> TaskAnswer:
        """Passes or rejects a result: pays the reward, or opens the task again.

        task_id: The id of the task.
        verdict: `pass` pays the reward. `reject` opens the task again, or fails the task after its last
            attempt.
        node_id: The node that reviews.
        note: For the next worker of the task, who gets the note in `context.review`.
        epoch: `review.epoch` of the result that was checked: if the task has a newer result, 409
            `stale_lease`.
        """
        fields = {"task_id": task_id, "verdict": verdict, "node_id": node_id, "note": note, "epoch": epoch}
        return cast("TaskAnswer", self._call("task/review", fields, options))

    def in_review(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> ReviewsAnswer:
        """The results that wait for a review, the most urgent first.

        cursor: The `next_cursor` of the page before.
        limit: The maximum number to return.
        """
        fields = {"cursor": cursor, "limit": limit}
        return cast("ReviewsAnswer", self._call("reviews", fields, options))

    def explain(self, task_id: str, *, options: CallOptions | None = None) -> TaskGetExplainAnswer:
        """Why a task does not run: all reasons; the position of a ready task.

        task_id: The id of the task.
        """
        fields = {"task_id": task_id}
        return cast("TaskGetExplainAnswer", self._call("task/{task_id}/explain", fields, options))

    def by_type(self, *, options: CallOptions | None = None) -> StatsTypesAnswer:
        """Task types: counts of tasks, times to start, and nodes for each type."""
        return cast("StatsTypesAnswer", self._call("stats/types", None, options))

    def failures(
        self,
        *,
        last: int | None = None,
        options: CallOptions | None = None,
    ) -> StatsFailuresAnswer:
        """Recent failures, grouped by message, and the nodes with the most.

        last: Of how many seconds; 3,600 if left out.
        """
        fields = {"last": last}
        return cast("StatsFailuresAnswer", self._call("stats/failures", fields, options))


class Messages(_Resource):
    def send(
        self,
        from_node: str,
        to_node: str,
        content: str,
        *,
        type: Literal["text", "task", "status"] | None = None,
        require_ack: bool | None = None,
        reply_to: str | None = None,
        thread: str | None = None,
        options: CallOptions | None = None,
    ) -> MessageSendAnswer:
        """Sends a message to one node.

        from_node: The sender, which need not be registered.
        to_node: The recipient.
        content: The message itself; at most 256 KiB of UTF-8.
        type: The kind of message.
        require_ack: Whether the recipient must acknowledge the message; until then the hub delivers the
            message again, up to 5 times.
        reply_to: The id of the message to which this message replies; the sender must have sent or received
            that message.
        thread: The conversation: the id of its first message, or a name that the sender gives. A reply
            continues the conversation of the message to which it replies.
        """
        fields = {
            "from_node": from_node,
            "to_node": to_node,
            "content": content,
            "type": type,
            "require_ack": require_ack,
            "reply_to": reply_to,
            "thread": thread,
        }
        return cast("MessageSendAnswer", self._call("message/send", fields, options))

    def receive(
        self,
        node_id: str,
        *,
        count: int | None = None,
        blocking: bool | None = None,
        timeout: float | None = None,
        options: CallOptions | None = None,
    ) -> MessageReceiveAnswer:
        """Takes messages out of a mailbox, oldest first; may wait for the first.

        With `blocking` it waits for `timeout` seconds, however long that is.

        node_id: The id of the node.
        count: The maximum number to return.
        blocking: Whether to wait for the first message.
        timeout: Seconds to wait.
        """
        fields = {"node_id": node_id, "count": count, "blocking": blocking, "timeout": timeout}
        return cast("MessageReceiveAnswer", self._call("message/receive", fields, options))

    def broadcast(
        self,
        from_node: str,
        content: str,
        *,
        type: Literal["broadcast", "alert", "update"] | None = None,
        capability: str | None = None,
        reply_to: str | None = None,
        thread: str | None = None,
        options: CallOptions | None = None,
    ) -> MessageBroadcastAnswer:
        """Sends a message to all online nodes, or to the nodes for a task type.

        from_node: The sender, which need not be registered.
        content: The message itself; at most 256 KiB of UTF-8.
        type: The kind of message.
        capability: Only to nodes that take tasks of this type: nodes with this capability, or without any.
        reply_to: The id of the message to which this message replies; the sender must have sent or received
            that message.
        thread: The conversation: the id of its first message, or a name that the sender gives. A reply
            continues the conversation of the message to which it replies.
        """
        fields = {
            "from_node": from_node,
            "content": content,
            "type": type,
            "capability": capability,
            "reply_to": reply_to,
            "thread": thread,
        }
        return cast("MessageBroadcastAnswer", self._call("message/broadcast", fields, options))

    def ack(self, node_id: str, message_id: str, *, options: CallOptions | None = None) -> MessageAckAnswer:
        """Acknowledges a message.

        node_id: The id of the node.
        message_id: The id of the message.
        """
        fields = {"node_id": node_id, "message_id": message_id}
        return cast("MessageAckAnswer", self._call("message/ack", fields, options))

    def history(
        self,
        node_id: str,
        *,
        before: str | None = None,
        thread: str | None = None,
        count: int | None = None,
        options: CallOptions | None = None,
    ) -> MessageHistoryAnswer:
        """The messages that a node sent or got, newest first.

        node_id: The id of the node.
        before: The id of a message: only messages before this message.
        thread: Only messages of this conversation, among its newest 2,000.
        count: The maximum number to return.
        """
        fields = {"node_id": node_id, "before": before, "thread": thread, "count": count}
        return cast("MessageHistoryAnswer", self._call("message/history", fields, options))

    def parked(
        self,
        *,
        node_id: str | None = None,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> MessageParkedAnswer:
        """Dead letters: the messages that nodes never acknowledged, oldest first.

        node_id: The node; if left out, all nodes, or the node that the key is bound to.
        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"node_id": node_id, "page": page, "per_page": per_page}
        return cast("MessageParkedAnswer", self._call("message/parked", fields, options))

    def redrive(
        self,
        node_id: str,
        message_id: str,
        *,
        options: CallOptions | None = None,
    ) -> MessageRedriveAnswer:
        """Puts a parked message back into its mailbox, with deliveries 0.

        node_id: The id of the node.
        message_id: The id of the message.
        """
        fields = {"node_id": node_id, "message_id": message_id}
        return cast("MessageRedriveAnswer", self._call("message/redrive", fields, options))

    def mailbox(
        self,
        node_id: str,
        *,
        since: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> AgentMessagesAnswer:
        """The messages that a node got, newest first, without taking any out.

        node_id: The id of the node.
        since: The id of a message: only messages after this message.
        before: The id of a message: only messages before this message.
        limit: The maximum number to return.
        """
        fields = {"node_id": node_id, "since": since, "before": before, "limit": limit}
        return cast("AgentMessagesAnswer", self._call("agent/messages", fields, options))


class Notes(_Resource):
    def put(
        self,
        key: str,
        text: str,
        *,
        node_id: str | None = None,
        if_version: int | None = None,
        options: CallOptions | None = None,
    ) -> NotePutAnswer:
        """Writes a note; with if_version only if the note has that version.

        key: The name of the note, any text: for example `api/decisions`.
        text: The content, at most 16 KiB.
        node_id: Who writes; if left out, the node of the key.
        if_version: Only if the note has this version; 0: only if there is no note with this key. If left out,
            any version.
        """
        fields = {"key": key, "text": text, "node_id": node_id, "if_version": if_version}
        return cast("NotePutAnswer", self._call("note/put", fields, options))

    def get(self, key: str, *, options: CallOptions | None = None) -> NoteGetAnswer:
        """A note with its text.

        key: The name of the note.
        """
        fields = {"key": key}
        return cast("NoteGetAnswer", self._call("note/get", fields, options))

    def list(
        self,
        *,
        prefix: str | None = None,
        cursor: str | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> NoteListAnswer:
        """The notes by key, without their content.

        prefix: Only notes whose key begins with this.
        cursor: The `next_cursor` of the previous page, with the same prefix.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"prefix": prefix, "cursor": cursor, "per_page": per_page}
        return cast("NoteListAnswer", self._call("note/list", fields, options))

    def search(
        self,
        q: str,
        *,
        prefix: str | None = None,
        cursor: str | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> NoteSearchAnswer:
        """The notes whose key or text has the words of a search, by key.

        q: Words, each of which must begin a word of the key or the text, ignoring case.
        prefix: Only notes whose key begins with this.
        cursor: The `next_cursor` of the previous page, with the same search.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"q": q, "prefix": prefix, "cursor": cursor, "per_page": per_page}
        return cast("NoteSearchAnswer", self._call("note/search", fields, options))

    def delete(
        self,
        key: str,
        *,
        node_id: str | None = None,
        if_version: int | None = None,
        options: CallOptions | None = None,
    ) -> NoteDeleteAnswer:
        """Deletes a note.

        key: The name of the note.
        node_id: Who deletes the note; if left out, the node of the key.
        if_version: Only if the note has this version; 0: only if there is no note with this key. If left out,
            any version.
        """
        fields = {"key": key, "node_id": node_id, "if_version": if_version}
        return cast("NoteDeleteAnswer", self._call("note/delete", fields, options))


class Leases(_Resource):
    def acquire(
        self,
        name: str,
        node_id: str,
        *,
        ttl_s: float | None = None,
        shared: bool | None = None,
        task_id: str | None = None,
        epoch: int | None = None,
        options: CallOptions | None = None,
    ) -> LeaseAcquireAnswer:
        """Takes an advisory lease on a name or a glob of paths, or renews it.

        name: A name, or a path or glob of paths: `*` stands for characters within a segment, a segment `**`
            for any segments; `src/` is `src/**`.
        node_id: The node that takes the lease; it must be online.
        ttl_s: Seconds until the deadline, at most 86,400; if left out 300, or 30 days with `task_id`.
        shared: Whether other nodes may have a shared lease on the same name; false if left out.
        task_id: A task that the node holds: the lease ends with it.
        epoch: The `epoch` of the task's lease: an old epoch returns 409 `stale_lease`.
        """
        fields = {
            "name": name,
            "node_id": node_id,
            "ttl_s": ttl_s,
            "shared": shared,
            "task_id": task_id,
            "epoch": epoch,
        }
        return cast("LeaseAcquireAnswer", self._call("lease/acquire", fields, options))

    def renew(
        self,
        name: str,
        node_id: str,
        *,
        task_id: str | None = None,
        fencing: int | None = None,
        ttl_s: float | None = None,
        options: CallOptions | None = None,
    ) -> LeaseRenewAnswer:
        """Moves the deadline of an advisory lease.

        name: The name or glob of lease/acquire.
        node_id: The node that has the lease.
        task_id: Only the lease for this task.
        fencing: The fencing number of the lease that is meant; any if left out.
        ttl_s: Seconds until the deadline; if left out, the last `ttl_s` of the lease.
        """
        fields = {"name": name, "node_id": node_id, "task_id": task_id, "fencing": fencing, "ttl_s": ttl_s}
        return cast("LeaseRenewAnswer", self._call("lease/renew", fields, options))

    def release(
        self,
        name: str,
        node_id: str,
        *,
        task_id: str | None = None,
        fencing: int | None = None,
        options: CallOptions | None = None,
    ) -> LeaseReleaseAnswer:
        """Ends an advisory lease.

        name: The name or glob of lease/acquire.
        node_id: The node that has the lease.
        task_id: Only the lease for this task.
        fencing: The fencing number of the lease that is meant; any if left out.
        """
        fields = {"name": name, "node_id": node_id, "task_id": task_id, "fencing": fencing}
        return cast("LeaseReleaseAnswer", self._call("lease/release", fields, options))

    def list(
        self,
        *,
        node_id: str | None = None,
        task_id: str | None = None,
        cursor: str | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> LeaseListAnswer:
        """The advisory leases that nodes have now, oldest first.

        node_id: Only leases of this node.
        task_id: Only leases for this task.
        cursor: The `next_cursor` of the previous page, with the same filter.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"node_id": node_id, "task_id": task_id, "cursor": cursor, "per_page": per_page}
        return cast("LeaseListAnswer", self._call("lease/list", fields, options))


class Lux(_Resource):
    def sign_in(self, node_id: str, *, options: CallOptions | None = None) -> SigninAnswer:
        """Pays a node its daily bonus, once per UTC day.

        node_id: The id of the node.
        """
        fields = {"node_id": node_id}
        return cast("SigninAnswer", self._call("signin", fields, options))

    def ledger(
        self,
        node_id: str,
        *,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> LuxLedgerAnswer:
        """The ledger entries of a node, newest first.

        node_id: The id of the node.
        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"node_id": node_id, "page": page, "per_page": per_page}
        return cast("LuxLedgerAnswer", self._call("lux/ledger", fields, options))

    def top(self, since: str, *, options: CallOptions | None = None) -> LuxTopAnswer:
        """The nodes that earned the most LUX since a time.

        since: Only LUX that was earned from this time on.
        """
        fields = {"since": since}
        return cast("LuxTopAnswer", self._call("lux/top", fields, options))

    def entries(
        self,
        *,
        since: int | None = None,
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> LuxEntriesAnswer:
        """The whole ledger after an entry, oldest first, with the hash chain.

        since: The `seq` of the last entry read; 0 if left out.
        limit: The maximum number to return.
        """
        fields = {"since": since, "limit": limit}
        return cast("LuxEntriesAnswer", self._call("lux/entries", fields, options))

    def head(self, *, options: CallOptions | None = None) -> LuxHeadAnswer:
        """The newest entry of the whole ledger: its number and its hash."""
        return cast("LuxHeadAnswer", self._call("lux/head", None, options))


class Groups(_Resource):
    def list(
        self,
        *,
        q: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        options: CallOptions | None = None,
    ) -> GroupListAnswer:
        """Groups by name, with their counts.

        q: The beginning of the name.
        limit: How many groups to return at most.
        cursor: The `next_cursor` of the previous page.
        """
        fields = {"q": q, "limit": limit, "cursor": cursor}
        return cast("GroupListAnswer", self._call("group/list", fields, options))

    def get(
        self,
        group: str,
        *,
        wait: float | None = None,
        options: CallOptions | None = None,
    ) -> GroupGetAnswer:
        """A group of tasks: counts, times, failures; may wait for its end.

        Waits for `wait` seconds, however long that is, until no task is unfinished.

        group: The name of the group of tasks; NAME/NODE of a group of a node's keys.
        wait: Seconds to wait until no task of the group is unfinished; 0, the default, returns at once.
        """
        fields = {"group": group, "wait": wait}
        return cast("GroupGetAnswer", self._call("group/{group}", fields, options))

    def cancel(
        self,
        group: str,
        *,
        node_id: str | None = None,
        reason: str | None = None,
        options: CallOptions | None = None,
    ) -> GroupCancelAnswer:
        """Cancels unfinished tasks of a group, which then fail.

        Cancels up to 1,000 tasks: repeat it while `left` is not 0.

        group: The name of the group of tasks; NAME/NODE of a group of a node's keys.
        node_id: The node that cancels the tasks.
        reason: The reason, which the event shows.
        """
        fields = {"group": group, "node_id": node_id, "reason": reason}
        return cast("GroupCancelAnswer", self._call("group/cancel", fields, options))

    def retry(
        self,
        group: str,
        *,
        cursor: str | None = None,
        options: CallOptions | None = None,
    ) -> GroupRetryAnswer:
        """Opens the failed tasks of a group again.

        Opens up to 1,000 tasks: repeat it with `next_cursor` while there is one.

        group: The name of the group of tasks; NAME/NODE of a group of a node's keys.
        cursor: The `next_cursor` of the call before.
        """
        fields = {"group": group, "cursor": cursor}
        return cast("GroupRetryAnswer", self._call("group/retry", fields, options))


class Schedules(_Resource):
    def put(
        self,
        name: str,
        *,
        cron: str | None = None,
        every_s: float | None = None,
        tz: str | None = None,
        task: SchedulePutTask | None = None,
        tasks: Sequence[SchedulePutTask] | None = None,
        overlap: Literal["skip", "queue"] | None = None,
        catch_up: Literal["one", "none"] | None = None,
        jitter_s: float | None = None,
        until: str | None = None,
        paused: bool | None = None,
        options: CallOptions | None = None,
    ) -> SchedulePutAnswer:
        """Creates or replaces a schedule, which creates a task at certain times.

        name: The name of the schedule; replaces a schedule of this name.
        cron: A cron expression: minute, hour, day of month, month, day of week; or `@daily` and the like.
        every_s: The seconds between two times, instead of `cron`; the first time comes after one interval.
        tz: The time zone of `cron`, of the IANA database; `UTC` if left out.
        task: The task to create, as for task/create.
        tasks: The tasks to create together, in a group of their own each time, in place of `task`.
        overlap: What happens at a time when an earlier task is unfinished: no new task (`skip`), or one more
            (`queue`).
        catch_up: What happens after times at which no hub ran: a task for the last of these times (`one`), or
            none (`none`).
        jitter_s: Each task may start up to this many seconds later.
        until: The schedule creates no task after this time.
        paused: Whether the schedule is paused: it creates no tasks until a schedule/put without this field.
        """
        fields = {
            "name": name,
            "cron": cron,
            "every_s": every_s,
            "tz": tz,
            "task": task,
            "tasks": tasks,
            "overlap": overlap,
            "catch_up": catch_up,
            "jitter_s": jitter_s,
            "until": until,
            "paused": paused,
        }
        return cast("SchedulePutAnswer", self._call("schedule/put", fields, options))

    def list(
        self,
        *,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> ScheduleListAnswer:
        """All schedules, by name.

        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"page": page, "per_page": per_page}
        return cast("ScheduleListAnswer", self._call("schedule/list", fields, options))

    def run(self, name: str, *, options: CallOptions | None = None) -> ScheduleRunAnswer:
        """Creates a task of a schedule now; the next time does not change.

        name: The name of the schedule.
        """
        fields = {"name": name}
        return cast("ScheduleRunAnswer", self._call("schedule/run", fields, options))

    def delete(self, name: str, *, options: CallOptions | None = None) -> ScheduleDeleteAnswer:
        """Deletes a schedule; its tasks stay.

        name: The name of the schedule.
        """
        fields = {"name": name}
        return cast("ScheduleDeleteAnswer", self._call("schedule/delete", fields, options))


class Webhooks(_Resource):
    def put(
        self,
        name: str,
        url: str,
        *,
        kinds: Sequence[EventKind] | None = None,
        task_id: str | None = None,
        node_id: str | None = None,
        creator_node: str | None = None,
        group: str | None = None,
        format: Literal["luxhub", "a2a", "ntfy"] | None = None,
        secret: str | None = None,
        options: CallOptions | None = None,
    ) -> WebhookPutAnswer:
        """Creates or replaces a webhook, which sends events to a URL.

        Not repeated after a fault: the hub shows a secret only once.

        name: The name of the webhook; replaces a webhook of this name.
        url: The URL to which the webhook sends: http or https, without a user name, a password and a
            fragment.
        kinds: Only events of these kinds; if left out or empty, all kinds.
        task_id: Only events of this task.
        node_id: Only events of this node.
        creator_node: Only events of the tasks that this node created.
        group: Only events of the tasks of this group.
        format: What the webhook sends: events as JSON (`luxhub`), notifications (`ntfy`), or the updates of
            A2A (`a2a`).
        secret: Signs the messages: `whsec_` and base64; with the format `ntfy`, an access token. If left out,
            the hub makes a secret for a new webhook; the response has the secret only if the hub made it.
        """
        fields = {
            "name": name,
            "url": url,
            "kinds": kinds,
            "task_id": task_id,
            "node_id": node_id,
            "creator_node": creator_node,
            "group": group,
            "format": format,
            "secret": secret,
        }
        return cast("WebhookPutAnswer", self._call("webhook/put", fields, options))

    def list(
        self,
        *,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> WebhookListAnswer:
        """All webhooks, by name, without their secrets.

        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"page": page, "per_page": per_page}
        return cast("WebhookListAnswer", self._call("webhook/list", fields, options))

    def test(self, name: str, *, options: CallOptions | None = None) -> WebhookTestAnswer:
        """Sends a test message to a webhook now, and returns the outcome.

        name: The name of the webhook.
        """
        fields = {"name": name}
        return cast("WebhookTestAnswer", self._call("webhook/test", fields, options))

    def resume(
        self,
        name: str,
        *,
        after: int | None = None,
        options: CallOptions | None = None,
    ) -> WebhookResumeAnswer:
        """Makes a webhook deliver again, from its cursor or from another event.

        name: The name of the webhook.
        after: Continues after the event with this id, not after the cursor.
        """
        fields = {"name": name, "after": after}
        return cast("WebhookResumeAnswer", self._call("webhook/resume", fields, options))

    def delete(self, name: str, *, options: CallOptions | None = None) -> WebhookDeleteAnswer:
        """Deletes a webhook; undelivered events stay in the event log.

        name: The name of the webhook.
        """
        fields = {"name": name}
        return cast("WebhookDeleteAnswer", self._call("webhook/delete", fields, options))


class Costs(_Resource):
    def usage(
        self,
        *,
        by: Literal["node", "creator", "type", "model", "group", "day"] | None = None,
        since: str | None = None,
        until: str | None = None,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> UsageAnswer:
        """What work has cost, by day, node, creator, type, model or group.

        by: What is summed up: `day` if left out.
        since: The first day, in UTC; 29 days before `until` if left out. At most 366 days.
        until: The last day, in UTC; today if left out.
        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"by": by, "since": since, "until": until, "page": page, "per_page": per_page}
        return cast("UsageAnswer", self._call("usage", fields, options))

    def void_usage(
        self,
        node_id: str,
        *,
        day: str | None = None,
        reason: str | None = None,
        options: CallOptions | None = None,
    ) -> UsageVoidAnswer:
        """Takes what a node has reported on a day off all sums and budgets.

        node_id: The id of the node.
        day: The day in UTC; today if left out.
        reason: The reason, which the event shows.
        """
        fields = {"node_id": node_id, "day": day, "reason": reason}
        return cast("UsageVoidAnswer", self._call("usage/void", fields, options))

    def set_budget(
        self,
        scope: Literal["hub", "node", "creator", "type", "group"],
        per: Literal["day", "month", "total"],
        *,
        value: str | None = None,
        cost_usd: float | None = None,
        tokens: int | None = None,
        on_limit: Literal["pause", "warn"] | None = None,
        options: CallOptions | None = None,
    ) -> BudgetSetAnswer:
        """Sets a budget: what work may cost in a day, in a month or in total.

        scope: What the budget is about: the whole hub, or one node, creator, type or group of tasks.
        per: The period: a day, a month (both in UTC), or all time.
        value: The node, the creator, the type or the group; left out or null: the hub, tasks without a
            creator, or without a type.
        cost_usd: Dollars; left out: any.
        tokens: Input and output tokens together; null: any.
        on_limit: `pause` (if left out): when the budget is used up, the hub hands out no task to which it
            applies. `warn`: the hub only logs an event.
        """
        fields = {
            "scope": scope,
            "per": per,
            "value": value,
            "cost_usd": cost_usd,
            "tokens": tokens,
            "on_limit": on_limit,
        }
        return cast("BudgetSetAnswer", self._call("budget/set", fields, options))

    def budgets(
        self,
        *,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> BudgetListAnswer:
        """All budgets, each with what has been spent.

        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"page": page, "per_page": per_page}
        return cast("BudgetListAnswer", self._call("budget/list", fields, options))

    def delete_budget(
        self,
        scope: Literal["hub", "node", "creator", "type", "group"],
        per: Literal["day", "month", "total"],
        *,
        value: str | None = None,
        options: CallOptions | None = None,
    ) -> BudgetDeleteAnswer:
        """Deletes a budget.

        scope: What the budget is about: the whole hub, or one node, creator, type or group of tasks.
        per: The period: a day, a month (both in UTC), or all time.
        value: The node, the creator, the type or the group; left out or null: the hub, tasks without a
            creator, or without a type.
        """
        fields = {"scope": scope, "per": per, "value": value}
        return cast("BudgetDeleteAnswer", self._call("budget/delete", fields, options))


class Limits(_Resource):
    def pause(
        self,
        *,
        type: str | None = None,
        limit_key: str | None = None,
        creator_node: str | None = None,
        reason: str | None = None,
        options: CallOptions | None = None,
    ) -> HubPauseAnswer:
        """Pauses the tasks of a type, a limit key or a creator, or all tasks.

        type: The type of the tasks; without `type`, `limit_key` and `creator_node`: all tasks.
        limit_key: The limit key of the tasks.
        creator_node: The creator of the tasks.
        reason: Why; everybody who asks why a task does not run can read it.
        """
        fields = {"type": type, "limit_key": limit_key, "creator_node": creator_node, "reason": reason}
        return cast("HubPauseAnswer", self._call("hub/pause", fields, options))

    def resume(
        self,
        *,
        type: str | None = None,
        limit_key: str | None = None,
        creator_node: str | None = None,
        options: CallOptions | None = None,
    ) -> HubResumeAnswer:
        """Ends a pause.

        type: The type of the tasks; without `type`, `limit_key` and `creator_node`: all tasks.
        limit_key: The limit key of the tasks.
        creator_node: The creator of the tasks.
        """
        fields = {"type": type, "limit_key": limit_key, "creator_node": creator_node}
        return cast("HubResumeAnswer", self._call("hub/resume", fields, options))

    def pauses(
        self,
        *,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> HubPausesAnswer:
        """What is paused.

        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"page": page, "per_page": per_page}
        return cast("HubPausesAnswer", self._call("hub/pauses", fields, options))

    def set(
        self,
        key: str,
        *,
        running: int | None = None,
        per_minute: int | None = None,
        options: CallOptions | None = None,
    ) -> LimitSetAnswer:
        """Limits how many tasks of a limit key run at once, or start per minute.

        key: The limit key; the key of a task is its `limit_key` or, if it has none, its `task_type`.
        running: How many tasks of the key may be assigned at once; left out: any number.
        per_minute: How many tasks of the key may be handed out in any 60 s; left out: any number.
        """
        fields = {"key": key, "running": running, "per_minute": per_minute}
        return cast("LimitSetAnswer", self._call("limit/set", fields, options))

    def list(
        self,
        *,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> LimitListAnswer:
        """All limits and holds, each with its current use.

        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"page": page, "per_page": per_page}
        return cast("LimitListAnswer", self._call("limit/list", fields, options))

    def delete(self, key: str, *, options: CallOptions | None = None) -> LimitDeleteAnswer:
        """Deletes the limit of a limit key, and ends a hold on the key.

        key: The limit key.
        """
        fields = {"key": key}
        return cast("LimitDeleteAnswer", self._call("limit/delete", fields, options))

    def hold(
        self,
        key: str,
        for_s: float,
        *,
        node_id: str | None = None,
        options: CallOptions | None = None,
    ) -> LimitHoldAnswer:
        """Holds a limit key: none of its tasks is handed out for a time.

        key: The limit key.
        for_s: For how many seconds no task of the key is handed out; a longer hold stays. At most 600 with a
            key that is bound to a node.
        node_id: The node that asks for the hold, which then shows the node as `held_by`. A bound key fills in
            its node.
        """
        fields = {"key": key, "for_s": for_s, "node_id": node_id}
        return cast("LimitHoldAnswer", self._call("limit/hold", fields, options))


class Keys(_Resource):
    def list(
        self,
        *,
        page: int | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> KeyListAnswer:
        """All keys, without their secrets.

        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"page": page, "per_page": per_page}
        return cast("KeyListAnswer", self._call("key/list", fields, options))

    def add(
        self,
        name: str,
        *,
        role: Literal["full", "viewer", "admin"] | None = None,
        variant: Literal["A", "B"] | None = None,
        node_id: str | None = None,
        mint_per_day: float | None = None,
        expires_at: str | None = None,
        expires_in_s: float | None = None,
        options: CallOptions | None = None,
    ) -> KeyAddAnswer:
        """Creates a key; only this response shows its secret.

        Not repeated after a fault: the hub keeps no secret that it could answer again.

        name: A name that no key has or had.
        role: What the key may do; `full` if left out. A viewer can read all but message contents; `admin` is
            for `X-Admin-Key`.
        variant: The variant of the responses to requests with the key, on any listener.
        node_id: The node that the key is bound to: it acts only for this node. With `.*` at the end also for
            its sessions, `NODE.2` to `NODE.99`, of which `X-Node-Id` names one.
        mint_per_day: LUX that the key may promise per UTC day, as rewards of tasks. null: any amount, or none
            if the hub is strict and the key is bound to a node.
        expires_at: When the key expires; at most ten years ahead.
        expires_in_s: Seconds until the key expires, instead of `expires_at`.
        """
        fields = {
            "name": name,
            "role": role,
            "variant": variant,
            "node_id": node_id,
            "mint_per_day": mint_per_day,
            "expires_at": expires_at,
            "expires_in_s": expires_in_s,
        }
        return cast("KeyAddAnswer", self._call("key/add", fields, options))

    def revoke(self, name: str, *, options: CallOptions | None = None) -> KeyRevokeAnswer:
        """Revokes a key permanently; its calls and streams end within a second.

        name: The name of the key.
        """
        fields = {"name": name}
        return cast("KeyRevokeAnswer", self._call("key/revoke", fields, options))


class Files(_FileTransfer):
    def list(
        self,
        *,
        task_id: str | None = None,
        q: str | None = None,
        page: int | None = None,
        per_page: int | None = None,
        cursor: str | None = None,
        options: CallOptions | None = None,
    ) -> FileListAnswer:
        """Files, newest first; filters by task and by name.

        task_id: Only files of this task.
        q: Words, each of which must begin a word of the file's name. One call examines 10,000 files; continue
            with next_cursor.
        page: The number of the page, from 1.
        per_page: Rows on a page; above 50 is read as 50.
        cursor: The `next_cursor` of the previous page, with the same filter and without `page`.
        """
        fields = {"task_id": task_id, "q": q, "page": page, "per_page": per_page, "cursor": cursor}
        return cast("FileListAnswer", self._call("file/list", fields, options))

    def download_url(self, file_id: str, *, options: CallOptions | None = None) -> FileDownloadUrlAnswer:
        """Makes a URL that downloads a file without a secret, for 10 minutes.

        file_id: The id of the file.
        """
        fields = {"file_id": file_id}
        return cast("FileDownloadUrlAnswer", self._call("file/download-url", fields, options))

    def upload_url(
        self,
        *,
        node_id: str | None = None,
        task_id: str | None = None,
        options: CallOptions | None = None,
    ) -> FileUploadUrlAnswer:
        """Makes a URL that uploads one file without a secret, for 10 minutes.

        node_id: The node of the file; with a key that is bound to a node, that node.
        task_id: The task that the file is attached to.
        """
        fields = {"node_id": node_id, "task_id": task_id}
        return cast("FileUploadUrlAnswer", self._call("file/upload-url", fields, options))

    def delete(self, file_id: str, *, options: CallOptions | None = None) -> FileDeleteAnswer:
        """Deletes a file permanently.

        file_id: The id of the file.
        """
        fields = {"file_id": file_id}
        return cast("FileDeleteAnswer", self._call("file/delete", fields, options))


class Invitations(_Resource):
    def create(
        self,
        node_id: str,
        *,
        expires_in_s: float | None = None,
        url: str | None = None,
        options: CallOptions | None = None,
    ) -> InvitationCreateAnswer:
        """Creates an invitation: a line with which the machine of a node joins.

        Not repeated after a fault: only its answer has the line.

        node_id: The node that is invited, which need not be registered.
        expires_in_s: Seconds until the invitation expires, 60 to 604,800; 3,600 if left out.
        url: The hub's URL in the line. If a request has no `url`, the hub chooses one of its addresses.
        """
        fields = {"node_id": node_id, "expires_in_s": expires_in_s, "url": url}
        return cast("InvitationCreateAnswer", self._call("invitation/create", fields, options))

    def list(
        self,
        *,
        cursor: str | None = None,
        per_page: int | None = None,
        options: CallOptions | None = None,
    ) -> InvitationListAnswer:
        """The invitations, oldest first.

        cursor: The `next_cursor` of the previous page.
        per_page: Rows on a page; above 50 is read as 50.
        """
        fields = {"cursor": cursor, "per_page": per_page}
        return cast("InvitationListAnswer", self._call("invitation/list", fields, options))

    def delete(self, invitation_id: str, *, options: CallOptions | None = None) -> InvitationDeleteAnswer:
        """Deletes an invitation, so that nobody can join with it.

        invitation_id: The invitation.
        """
        fields = {"invitation_id": invitation_id}
        return cast("InvitationDeleteAnswer", self._call("invitation/delete", fields, options))


#: The operations that take and answer JSON, and how each is called.
METHODS = {
    "node/register": "POST",
    "node/heartbeat": "POST",
    "node/leave": "POST",
    "node/drain": "POST",
    "node/delete": "POST",
    "node/list": "GET",
    "node/{node_id}": "GET",
    "task/create": "POST",
    "task/next": "POST",
    "task/assign": "POST",
    "task/claim": "POST",
    "task/complete": "POST",
    "task/release": "POST",
    "task/fail": "POST",
    "task/extend": "POST",
    "task/retry": "POST",
    "task/cancel": "POST",
    "task/update": "POST",
    "task/revoke": "POST",
    "task/batch-assign": "POST",
    "task/delete": "POST",
    "task/list": "GET",
    "task/list?fields=summary": "GET",
    "task/count": "GET",
    "task/wait": "GET",
    "task/pull": "GET",
    "task/stats": "GET",
    "task/{task_id}": "GET",
    "task/{task_id}/inputs": "GET",
    "task/{task_id}/graph": "GET",
    "lessons": "GET",
    "task/output": "POST",
    "task/{task_id}/output": "GET",
    "task/ask": "POST",
    "task/answer": "POST",
    "task/answer-by-token": "POST",
    "task/{task_id}/questions": "GET",
    "questions": "GET",
    "task/review": "POST",
    "reviews": "GET",
    "message/send": "POST",
    "message/receive": "POST",
    "message/broadcast": "POST",
    "message/ack": "POST",
    "message/history": "GET",
    "message/parked": "GET",
    "message/redrive": "POST",
    "agent/message": "POST",
    "agent/messages": "GET",
    "agent/broadcast": "POST",
    "agent/ack": "POST",
    "note/put": "POST",
    "note/get": "GET",
    "note/list": "GET",
    "note/search": "GET",
    "note/delete": "POST",
    "lease/acquire": "POST",
    "lease/renew": "POST",
    "lease/release": "POST",
    "lease/list": "GET",
    "signin": "POST",
    "lux/ledger": "GET",
    "lux/top": "GET",
    "lux/entries": "GET",
    "lux/head": "GET",
    "group/list": "GET",
    "group/{group}": "GET",
    "group/cancel": "POST",
    "group/retry": "POST",
    "schedule/put": "POST",
    "schedule/list": "GET",
    "schedule/run": "POST",
    "schedule/delete": "POST",
    "webhook/put": "POST",
    "webhook/list": "GET",
    "webhook/test": "POST",
    "webhook/resume": "POST",
    "webhook/delete": "POST",
    "usage": "GET",
    "usage/void": "POST",
    "budget/set": "POST",
    "budget/list": "GET",
    "budget/delete": "POST",
    "hub/pause": "POST",
    "hub/resume": "POST",
    "hub/pauses": "GET",
    "limit/set": "POST",
    "limit/list": "GET",
    "limit/delete": "POST",
    "limit/hold": "POST",
    "task/{task_id}/explain": "GET",
    "key/list": "GET",
    "key/add": "POST",
    "key/revoke": "POST",
    "stats/types": "GET",
    "stats/failures": "GET",
    "status": "GET",
    "events": "GET",
    "poll": "GET",
    "stats/minutes": "GET",
    "stats/nodes": "GET",
    "pg/diagnostic": "GET",
    "batch": "POST",
    "openapi.json": "GET",
    "file/list": "GET",
    "file/download-url": "POST",
    "file/upload-url": "POST",
    "file/delete": "POST",
    "file/{file_id}": "DELETE",
    "invitation/create": "POST",
    "invitation/list": "GET",
    "invitation/delete": "POST",
    "join": "POST",
    "standby/invite": "POST",
    "copy/changes": "GET",
    "copy/promoted": "POST",
    "promote": "POST",
}

#: The fields of each request, with those of the objects in it; 0: anything.
FIELDS: Dict[str, Any] = {
    "node/register": {"node_id":0,"name":0,"host":0,"port":0,"capabilities":0,"resources":0,"max_tasks":0,"auto_assign":0},
    "node/heartbeat": {"node_id":0},
    "node/leave": {"node_id":0},
    "node/drain": {"node_id":0,"drain":0},
    "node/delete": {"node_id":0},
    "node/list": {"status":0,"q":0,"capability":0,"order":0,"tasks":0,"page":0,"per_page":0,"cursor":0},
    "node/{node_id}": {"node_id":0},
    "task/create": {"title":0,"description":0,"task_type":0,"priority":0,"lux_reward":0,"creator_node":0,"for_node":0,"files":0,"depends_on":0,"on_dependency":0,"unique_key":0,"unique_for_s":0,"delay_s":0,"not_before":0,"expires_at":0,"timeout_s":0,"max_run_s":0,"retain_s":0,"review":0,"review_within_s":0,"on_review_timeout":0,"quorum":{"results":0,"of":0,"compare":0},"max_cost_usd":0,"max_attempts":0,"backoff_s":0,"group":0,"tags":0,"requires":{"capabilities":0,"resources":0},"limit_key":0,"traceparent":0,"tracestate":0},
    "task/next": {"node_id":0,"wait":0,"task_types":0,"resume":0},
    "task/assign": {"task_id":0,"node_id":0},
    "task/claim": {"task_id":0,"node_id":0},
    "task/complete": {"task_id":0,"node_id":0,"epoch":0,"result":0,"usage":{"seq":0,"model":0,"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_usd":0}},
    "task/release": {"task_id":0,"node_id":0,"epoch":0,"reason":0,"checkpoint":0,"usage":{"seq":0,"model":0,"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_usd":0},"hold_s":0},
    "task/fail": {"task_id":0,"node_id":0,"epoch":0,"error":0,"kind":0,"retry":0,"checkpoint":0,"usage":{"seq":0,"model":0,"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_usd":0},"hold_s":0},
    "task/extend": {"task_id":0,"node_id":0,"epoch":0,"note":0,"checkpoint":0,"usage":{"seq":0,"model":0,"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_usd":0}},
    "task/retry": {"task_id":0,"with_dependents":0,"keep_checkpoint":0,"max_cost_usd":0},
    "task/cancel": {"task_id":0,"node_id":0,"reason":0},
    "task/update": {"task_id":0,"title":0,"description":0,"priority":0,"lux_reward":0,"not_before":0,"expires_at":0,"tags":0,"limit_key":0},
    "task/revoke": {"task_id":0,"node_id":0,"reason":0},
    "task/batch-assign": {"assignments":{"task_id":0,"node_id":0}},
    "task/delete": {"task_id":0},
    "task/list": {"status":0,"node_id":0,"creator_node":0,"task_type":0,"group":0,"tag":0,"failed_by":0,"failure_kind":0,"failure_group":0,"failure_q":0,"since":0,"until":0,"held":0,"q":0,"order":0,"page":0,"per_page":0,"cursor":0},
    "task/list?fields=summary": {"status":0,"node_id":0,"creator_node":0,"task_type":0,"group":0,"tag":0,"failed_by":0,"failure_kind":0,"failure_group":0,"failure_q":0,"since":0,"until":0,"held":0,"q":0,"order":0,"page":0,"per_page":0,"cursor":0},
    "task/count": {"status":0,"node_id":0,"creator_node":0,"task_type":0,"group":0,"tag":0,"failed_by":0,"failure_kind":0,"failure_group":0,"failure_q":0,"since":0,"until":0,"held":0,"q":0},
    "task/wait": {"task_ids":0,"until":0,"wait":0},
    "task/pull": {"node_id":0,"limit":0},
    "task/stats": {},
    "task/{task_id}": {"task_id":0,"wait":0,"context":0},
    "task/{task_id}/inputs": {"task_id":0,"cursor":0,"limit":0},
    "task/{task_id}/graph": {"task_id":0},
    "lessons": {"q":0,"type":0,"cursor":0,"limit":0},
    "task/output": {"task_id":0,"node_id":0,"epoch":0,"offset":0,"data":0},
    "task/{task_id}/output": {"task_id":0,"attempt":0,"from":0,"wait":0},
    "task/ask": {"task_id":0,"node_id":0,"epoch":0,"question":0,"choices":0,"schema":0,"within_s":0,"park":0,"wait":0},
    "task/answer": {"task_id":0,"question_id":0,"answer":0,"node_id":0},
    "task/answer-by-token": {"token":0},
    "task/{task_id}/questions": {"task_id":0,"question_id":0,"wait":0,"since":0,"cursor":0,"limit":0},
    "questions": {"state":0,"cursor":0,"limit":0},
    "task/review": {"task_id":0,"node_id":0,"verdict":0,"note":0,"epoch":0},
    "reviews": {"cursor":0,"limit":0},
    "message/send": {"from_node":0,"to_node":0,"content":0,"type":0,"require_ack":0,"reply_to":0,"thread":0},
    "message/receive": {"node_id":0,"count":0,"blocking":0,"timeout":0},
    "message/broadcast": {"from_node":0,"content":0,"type":0,"capability":0,"reply_to":0,"thread":0},
    "message/ack": {"node_id":0,"message_id":0},
    "message/history": {"node_id":0,"before":0,"thread":0,"count":0},
    "message/parked": {"node_id":0,"page":0,"per_page":0},
    "message/redrive": {"node_id":0,"message_id":0},
    "agent/message": {"from_node":0,"to_node":0,"content":0,"type":0,"require_ack":0,"reply_to":0,"thread":0},
    "agent/messages": {"node_id":0,"since":0,"before":0,"limit":0},
    "agent/broadcast": {"from_node":0,"content":0,"type":0,"capability":0,"reply_to":0,"thread":0},
    "agent/ack": {"node_id":0,"message_id":0},
    "note/put": {"key":0,"text":0,"node_id":0,"if_version":0},
    "note/get": {"key":0},
    "note/list": {"prefix":0,"cursor":0,"per_page":0},
    "note/search": {"q":0,"prefix":0,"cursor":0,"per_page":0},
    "note/delete": {"key":0,"node_id":0,"if_version":0},
    "lease/acquire": {"name":0,"node_id":0,"ttl_s":0,"shared":0,"task_id":0,"epoch":0},
    "lease/renew": {"name":0,"node_id":0,"task_id":0,"fencing":0,"ttl_s":0},
    "lease/release": {"name":0,"node_id":0,"task_id":0,"fencing":0},
    "lease/list": {"node_id":0,"task_id":0,"cursor":0,"per_page":0},
    "signin": {"node_id":0},
    "lux/ledger": {"node_id":0,"page":0,"per_page":0},
    "lux/top": {"since":0},
    "lux/entries": {"since":0,"limit":0},
    "lux/head": {},
    "group/list": {"q":0,"limit":0,"cursor":0},
    "group/{group}": {"group":0,"wait":0},
    "group/cancel": {"group":0,"node_id":0,"reason":0},
    "group/retry": {"group":0,"cursor":0},
    "schedule/put": {"name":0,"cron":0,"every_s":0,"tz":0,"task":{"title":0,"description":0,"task_type":0,"priority":0,"lux_reward":0,"creator_node":0,"delay_s":0,"timeout_s":0,"max_run_s":0,"retain_s":0,"review":0,"review_within_s":0,"on_review_timeout":0,"quorum":{"results":0,"of":0,"compare":0},"max_cost_usd":0,"max_attempts":0,"backoff_s":0,"group":0,"tags":0,"requires":{"capabilities":0,"resources":0},"limit_key":0,"traceparent":0,"tracestate":0},"tasks":{"ref":0,"needs":0,"on_dependency":0,"task":{"title":0,"description":0,"task_type":0,"priority":0,"lux_reward":0,"creator_node":0,"delay_s":0,"timeout_s":0,"max_run_s":0,"retain_s":0,"review":0,"review_within_s":0,"on_review_timeout":0,"quorum":{"results":0,"of":0,"compare":0},"max_cost_usd":0,"max_attempts":0,"backoff_s":0,"group":0,"tags":0,"requires":{"capabilities":0,"resources":0},"limit_key":0,"traceparent":0,"tracestate":0}},"overlap":0,"catch_up":0,"jitter_s":0,"until":0,"paused":0},
    "schedule/list": {"page":0,"per_page":0},
    "schedule/run": {"name":0},
    "schedule/delete": {"name":0},
    "webhook/put": {"name":0,"url":0,"kinds":0,"task_id":0,"node_id":0,"creator_node":0,"group":0,"format":0,"secret":0},
    "webhook/list": {"page":0,"per_page":0},
    "webhook/test": {"name":0},
    "webhook/resume": {"name":0,"after":0},
    "webhook/delete": {"name":0},
    "usage": {"by":0,"since":0,"until":0,"page":0,"per_page":0},
    "usage/void": {"node_id":0,"day":0,"reason":0},
    "budget/set": {"scope":0,"value":0,"per":0,"cost_usd":0,"tokens":0,"on_limit":0},
    "budget/list": {"page":0,"per_page":0},
    "budget/delete": {"scope":0,"value":0,"per":0},
    "hub/pause": {"type":0,"limit_key":0,"creator_node":0,"reason":0},
    "hub/resume": {"type":0,"limit_key":0,"creator_node":0},
    "hub/pauses": {"page":0,"per_page":0},
    "limit/set": {"key":0,"running":0,"per_minute":0},
    "limit/list": {"page":0,"per_page":0},
    "limit/delete": {"key":0},
    "limit/hold": {"key":0,"for_s":0,"node_id":0},
    "task/{task_id}/explain": {"task_id":0},
    "key/list": {"page":0,"per_page":0},
    "key/add": {"name":0,"role":0,"variant":0,"node_id":0,"mint_per_day":0,"expires_at":0,"expires_in_s":0},
    "key/revoke": {"name":0},
    "stats/types": {},
    "stats/failures": {"last":0},
    "status": {},
    "events": {"since":0,"since_time":0,"limit":0,"kind":0,"task_id":0,"node_id":0,"group":0,"tag":0},
    "poll": {"since":0,"timeout":0},
    "stats/minutes": {"last":0,"range":0},
    "stats/nodes": {},
    "pg/diagnostic": {},
    "batch": {"requests":{"path":0,"body":0,"ref":0}},
    "openapi.json": {},
    "file/list": {"task_id":0,"q":0,"page":0,"per_page":0,"cursor":0},
    "file/download-url": {"file_id":0},
    "file/upload-url": {"node_id":0,"task_id":0},
    "file/delete": {"file_id":0},
    "file/{file_id}": {"file_id":0},
    "invitation/create": {"node_id":0,"expires_in_s":0,"url":0},
    "invitation/list": {"cursor":0,"per_page":0},
    "invitation/delete": {"invitation_id":0},
    "join": {"token":0,"key_hash":0},
    "standby/invite": {"name":0,"url":0},
    "copy/changes": {"after":0,"at":0,"term":0,"url_a":0,"url_a_tls":0,"url_b":0,"url_b_tls":0},
    "copy/promoted": {"term":0,"urls":{"A":0,"A_tls":0,"B":0,"B_tls":0},"line":0},
    "promote": {},
}
