# SPDX-License-Identifier: Apache-2.0
"""Holds answers of the service against its own description, /openapi.json."""
import json
import re


def plane_of(headers):
    """Whom a request is for: x-plane in the description."""
    headers = {name.lower(): value for name, value in headers.items()}
    if "e2b-sandbox-id" not in headers:
        return "control"
    return "interpreter" if headers.get("e2b-sandbox-port") == "49999" else "envd"


class Description:
    """Raises ImportError where there is no jsonschema (package python3-jsonschema)."""

    def __init__(self, document):
        import jsonschema  # pylint: disable=import-outside-toplevel
        self.document = document
        self.validator = jsonschema.Draft202012Validator
        self.routes = []
        for path, operations in document["paths"].items():
            pattern = re.compile("^" + re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path)) + "$")
            for method, operation in operations.items():
                if method in ("get", "post", "put", "patch", "delete", "head"):
                    self.routes.append((method.upper(), pattern, path, operation))

    def operation(self, method, target, headers):
        """The description of what was asked, or None. The same path may be in several planes."""
        path = target.partition("?")[0]
        plane = plane_of(headers)
        if plane == "control" and "signature=" in target:
            plane = "envd"
        # Each plane has a /health; a description can have a path only once.
        path = f"/{plane}/health" if plane != "control" and path == "/health" else path
        found = [(described, operation) for wanted, pattern, described, operation in self.routes
                 if wanted == method and pattern.match(path) and operation.get("x-plane", "control") == plane]
        # /sandboxes/metrics is also of the form /sandboxes/{id}: the one without a parameter is meant.
        found.sort(key=lambda each: "{" in each[0])
        return found[0][1] if found else None

    def resolve(self, value):
        while "$ref" in value:
            node = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                node = node[part]
            value = node
        return value

    def problems(self, seen):
        """What is wrong with one answer: a list of texts."""
        reply = seen.reply
        if seen.method == "OPTIONS":
            return []  # what a browser asks before it asks; no client of ours does
        operation = self.operation(seen.method, seen.path, seen.headers)
        if operation is None:
            return [] if reply.status in (400, 401, 404, 405, 421, 429, 431, 502) else [f"{reply.status} of a route that is not described"]
        responses = operation["responses"]
        response = responses.get(str(reply.status)) or (responses.get("default") if reply.status >= 400 else None)
        if response is None:
            return [f"status {reply.status} is not described"]
        content = self.resolve(response).get("content")
        if content is None:
            return [f"a body that is not described: {reply.body[:200]!r}"] if reply.body else []
        kind = reply.headers.get("content-type", "").partition(";")[0]
        if not reply.body:
            return []
        if kind not in content and "*/*" not in content:
            return [f"content type {kind!r} is not described ({', '.join(content)})"]
        if kind != "application/json" or "schema" not in content.get(kind, {}):
            return []
        # The references of a schema lead into the whole document.
        schema = content[kind]["schema"] | {"components": self.document["components"]}
        validator = self.validator(schema)
        return [f"{'/'.join(map(str, error.absolute_path)) or 'body'}: {error.message}"[:300]
                for error in validator.iter_errors(json.loads(reply.body))]
