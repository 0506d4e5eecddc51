#!/usr/bin/env python3
"""Receives webhooks: verifies the signature, and handles each message once. Needs only the standard library.

    LUXHUB_WEBHOOK_SECRET=whsec_… python3 webhook-receiver.py 8080
"""
import base64, hashlib, hmac, json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 300  # an older message may be a copy of one that somebody recorded


def verify(secret, headers, body):
    """Returns the id of the message; raises ValueError if it is not signed with the secret, or too old."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE_S:
        raise ValueError("the message is too old, or has no time")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    if not any(hmac.compare_digest(expected, shown) for shown in headers.get("webhook-signature", "").split()):
        raise ValueError("the signature is wrong")
    return message_id


handled = set()  # of a real receiver: a table, in the transaction that does the work


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            message_id = verify(os.environ["LUXHUB_WEBHOOK_SECRET"], self.headers, body)
        except ValueError as error:
            return self.send_error(400, str(error))
        if message_id not in handled:
            message = json.loads(body)
            print(message["type"], json.dumps(message["data"]), flush=True)
            handled.add(message_id)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("", int(sys.argv[1])), Receiver)
    print(f"port {server.server_port}", flush=True)
    server.serve_forever()
