"""A stand-in for a Qdrant server: the REST calls that hubless makes, answered by qdrant-client in memory.

It speaks the same JSON as a server, so the remote half of the client is really used; how a server itself
behaves is not tested. `drop_after` lets it break a connection in the middle of a request.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from pydantic import TypeAdapter
from qdrant_client import QdrantClient, models

from hubless.stores.opening import open_store
from hubless.testing.store_cases import Case
from tests.stores.qdrant_cases import add, ask, fill


def parse(kind, value):
    return TypeAdapter(kind).validate_python(value)


class Engine:
    """What the server answers, by method and path; `seen` lists the requests."""

    def __init__(self, version="1.20.0"):
        self.memory, self.version = QdrantClient(":memory:"), version
        self.seen, self.keys = [], []  # requests, and their keys
        self.drop_after, self.refuses = None, None  # number of requests, HTTP status
        self.settings, self.schemas, self.statuses = {}, {}, []  # reported instead of what memory knows

    def answer(self, method, parts, body):
        match [method, *parts]:
            case ["GET"]:
                return {"title": "stand-in", "version": self.version}
            case ["GET", "aliases"]:
                return self.memory.get_aliases()
            case ["GET", "collections"]:
                return self.memory.get_collections()
            case ["POST", "collections", "aliases"]:
                actions = parse(list[models.AliasOperations], body["actions"])
                return self.memory.update_collection_aliases(actions)
            case ["GET", "collections", name, "exists"]:
                return {"exists": self.memory.collection_exists(name)}
            case ["GET", "collections", name]:
                return self.info(name)
            case ["PUT", "collections", name]:
                made = models.CreateCollection(**body)
                return self.memory.create_collection(
                    name, made.vectors, made.sparse_vectors, metadata=made.metadata
                )
            case ["PATCH", "collections", name]:
                assert not self.is_alias(name), "a server takes no alias here"
                return self.memory.update_collection(name, metadata=body.get("metadata"))
            case ["PUT", "collections", name, "index"]:
                assert not self.is_alias(name)
                self.schemas.setdefault(name, {})[body["field_name"]] = body["field_schema"]
                return {"operation_id": 0, "status": "completed"}
            case [_, "collections", name, "points", *verb]:
                return self.points(method, name, verb, body)

    def is_alias(self, name):
        return name in {item.alias_name for item in self.memory.get_aliases().aliases}

    def info(self, name):
        info = self.memory.get_collection(name).model_dump(mode="json")
        if self.statuses:
            info["status"] = self.statuses.pop(0)
        if not (info["config"]["metadata"] or {}).get("hubless"):
            info["config"] |= self.settings
        fields = self.schemas.get(name, {})
        return info | {
            "payload_schema": {key: {"data_type": kind, "points": 1} for key, kind in fields.items()}
        }

    def points(self, method, name, verb, body):
        match [method, *verb]:
            case ["POST", "scroll"]:
                points, following = self.memory.scroll(name, **options_of(body))
                return {"points": dumped(points), "next_page_offset": following}
            case ["POST", "count"]:
                return self.memory.count(name)
            case ["POST", "delete"]:
                return self.memory.delete(name, models.PointIdsList(**body))
            case ["POST", "query", "batch"]:
                searches = [models.QueryRequest(**search) for search in body["searches"]]
                return dumped(self.memory.query_batch_points(name, searches))
            case ["POST", "query"]:
                return self.memory.query_batch_points(name, [models.QueryRequest(**body)])[0]
            case ["PUT"]:
                return self.memory.upsert(name, [models.PointStruct(**point) for point in body["points"]])
            case ["POST"]:
                return dumped(self.memory.retrieve(name, **options_of(body)))


def options_of(body):
    """Return the options of a request, by the names of the client."""
    options = {key: value for key, value in body.items() if value is not None}
    return {"with_vectors" if key == "with_vector" else key: value for key, value in options.items()}


def dumped(items):
    return [item.model_dump(mode="json") for item in items]


@contextmanager
def serving(engine):
    """Serve an engine; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self):
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length) or "null")
            parts = [unquote(part) for part in urlsplit(self.path).path.split("/") if part]
            engine.seen.append((self.command, "/".join(parts), body))
            engine.keys.append(self.headers.get("api-key"))
            if engine.drop_after is not None and len(engine.seen) > engine.drop_after:
                self.connection.close()
                return
            try:
                result = engine.answer(self.command, parts, body)
                status = engine.refuses or 200
            except ValueError as error:
                result, status = {"error": str(error)}, 404 if "not found" in str(error) else 400
            result = result.model_dump(mode="json") if hasattr(result, "model_dump") else result
            whole = result if not parts else {"result": result, "status": "ok", "time": 0.0}
            text = json.dumps(whole).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = handle_one  # names that http.server calls

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def server(request):
    """Return the Case of a collection on a server."""
    engine = Engine()
    served = serving(engine)
    address = served.__enter__()
    request.addfinalizer(lambda: served.__exit__(None, None, None))

    def make(_, ids, X, texts, metric):
        engine.memory = QdrantClient(":memory:")
        fill(engine.memory, ids, X, texts, metric)
        return open_store(f"qdrant:{address}#items")

    return Case(make, ask, add, metrics=("l2", "cosine", "ip"), text_ids=False)
