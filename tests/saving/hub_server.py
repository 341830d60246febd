"""A stand-in for the Hugging Face Hub on this machine: the parts of its API that huggingface_hub uses here.

Repositories are in memory. It takes every file as part of its commit, as the Hub does with small ones.
Uploads by Xet, which the Hub wants of large files, are compiled code whose protocol it does not speak.
`trouble` makes it answer otherwise: a function of the handler, which returns True where it has answered.
"""

import base64
import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote

TOKEN = "hf_secretsecretsecretsecretsecretsec"  # may write


class Hub:
    """The server; `url` is its address, `asked` has the method, path and Authorization of every request."""

    def __init__(self):
        self.commits, self.refs, self.created = {}, {}, {}
        self.asked, self.trouble = [], lambda handler: False
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def commit(self, repo, files, revision="main"):
        """Keep a version of files, {name: bytes}; return its hash."""
        before = self.commits.get(self.refs.get((repo, revision)), {})
        oid = hashlib.sha1(json.dumps([repo, revision, len(self.commits)]).encode()).hexdigest()
        self.commits[oid] = {**before, **files}
        self.refs[repo, revision] = oid
        return oid

    def files(self, repo, revision):
        """The hash and the files of a version; None where there is none."""
        oid = revision if revision in self.commits else self.refs.get((repo, revision))
        return None if oid is None else (oid, self.commits[oid])

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def answer(self, status=200, body=b"", **headers):
        """Send an answer; names of headers have _ for -."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content_Length": str(len(body)), **headers}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_one(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.sent = self.rfile.read(length)
        self.path = unquote(self.path)
        self.hub.asked.append((self.command, self.path, self.headers.get("Authorization")))
        if self.hub.trouble(self):
            return
        words = self.path.strip("/").split("?")[0].split("/")
        if words[2:3] == ["resolve"]:
            self._file("/".join(words[:2]), words[3], "/".join(words[4:]))
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(401, {"error": "Invalid username or password."})
        elif words[0] == "api":
            self._api(words[1:])
        else:
            self.answer(404)

    do_GET = do_HEAD = do_POST = do_PUT = handle_one

    def _file(self, repo, revision, name):
        version = self.hub.files(repo, revision)
        if version is None:
            known = any(each == repo for each, _ in self.hub.refs)
            code = "RevisionNotFound" if known else "RepoNotFound"
            return self.answer(404 if known else 401, X_Error_Code=code, X_Error_Message=code)
        oid, files = version
        if name not in files:
            return self.answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=oid)
        etag = hashlib.sha256(files[name]).hexdigest()
        return self.answer(200, files[name], ETag=f'"{etag}"', X_Repo_Commit=oid)

    def _api(self, words):
        given = json.loads(self.sent) if self.sent.startswith(b"{") and b"\n{" not in self.sent else {}
        if words == ["validate-yaml"]:
            return self.answer(200, {"errors": [], "warnings": []})
        if words == ["repos", "create"]:
            repo = f"{given.get('organization') or 'user'}/{given['name']}"
            self.hub.created[repo] = given
            if (repo, "main") not in self.hub.refs:
                self.hub.commit(repo, {})
            return self.answer(200, {"url": f"{self.hub.url}/{repo}"})
        repo, verb, rest = "/".join(words[1:3]), words[3] if len(words) > 3 else "", "/".join(words[4:])
        if verb == "preupload":
            how = {"uploadMode": "regular", "shouldIgnore": False}
            return self.answer(200, {"files": [{"path": f["path"], **how} for f in given["files"]]})
        if verb == "commit":
            oid = self.hub.commit(repo, self._committed(), rest)
            return self.answer(
                200, {"commitUrl": f"{self.hub.url}/{repo}/commit/{oid}", "commitOid": oid, "success": True}
            )
        if verb in ("branch", "tag"):
            start = given.get("startingPoint", "main") if verb == "branch" else rest
            name = rest if verb == "branch" else given["tag"]
            self.hub.refs[repo, name] = self.hub.files(repo, start)[0]
            return self.answer(200)
        return self.answer(200, {"id": repo, "siblings": []})

    def _committed(self):
        files = {}
        for line in self.sent.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
        return files

    def log_message(self, *words):
        """Say nothing."""
