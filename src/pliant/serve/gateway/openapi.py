"""What the gateway's routes are, for tools: a description by OpenAPI 3.1 of all that it answers over HTTP. Pure."""

import json
from typing import Any, Final

from pliant import __version__

_TEXT: Final = {"type": "string"}
_TENSOR: Final = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": _TEXT,
        "shape": {"type": "array", "items": {"type": "integer"}},
        "datatype": {
            "enum": [
                *("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"),
                *("FP16", "BF16", "FP32", "FP64", "BYTES"),
            ]
        },
        "parameters": {"type": "object", "description": "`binary_data_size`: so many bytes after the JSON are it."},
        "data": {"description": "Its elements, nested or flat, row by row; left out if they are binary."},
    },
}
_SCHEMAS: Final[dict[str, Any]] = {
    "Error": {"type": "object", "required": ["error"], "properties": {"error": _TEXT}},
    "Tensor": _TENSOR,
    "InferRequest": {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": _TEXT,
            "parameters": {"type": "object"},
            "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
            "outputs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": _TEXT, "parameters": {"type": "object"}},
                },
            },
        },
    },
    "InferResponse": {
        "type": "object",
        "required": ["model_name", "outputs"],
        "properties": {
            "model_name": _TEXT,
            "model_version": _TEXT,
            "id": _TEXT,
            "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
        },
    },
    "Model": {
        "type": "object",
        "required": ["name", "versions", "platform", "inputs", "outputs"],
        "properties": {
            "name": _TEXT,
            "versions": {"type": "array", "items": _TEXT},
            "platform": _TEXT,
            "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
            "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
        },
    },
    "Index": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name", "version", "state", "reason"],
            "properties": {
                "name": _TEXT,
                "version": _TEXT,
                "state": {"enum": ["READY", "UNAVAILABLE"]},
                "reason": _TEXT,
            },
        },
    },
    "Object": {"type": "object"},
}
_FLAT: Final = {"schema": {"type": "object"}}
_PARTS: Final[dict[str, Any]] = {"text/event-stream": {}, "application/x-ndjson": {}}
"""Of who accepts one of these: an event, or a line, for every part of an answer."""
_WORDS: Final = {
    400: "The request is none, or the model says that its inputs are wrong.",
    401: "No token, or one that opens nothing.",
    403: "The token may not do it: `infer` to ask, `endpoints:write` to load and unload.",
    404: "No endpoint, or version, of this name that you may ask.",
    408: "The body came too slowly.",
    413: "The body is longer than `max_body_bytes`.",
    429: "Too many requests, of the token or of the endpoint; `Retry-After` says how long to wait.",
    500: "The model raised an error.",
    502: "Kernels ended while they held the request.",
    503: "Nothing serves it now; `Retry-After` says how long to wait.",
    504: "No answer came in time: yours, `max_request_s`, or `execution_timeout_s`.",
}
_ASKED: Final = (401, 403, 404, 503)
_INFER: Final = (400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504)
_MODEL: Final = {"name": "name", "in": "path", "required": True, "schema": _TEXT, "description": "Of an endpoint."}
_NUMBER: Final = {
    "name": "version",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^v?[0-9]{1,9}$"},
}
_PATIENCE: Final = {
    "name": "X-Request-Timeout-S",
    "in": "header",
    "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
    "description": "Seconds that you wait.",
}
_JSON_LENGTH: Final = {
    "name": "Inference-Header-Content-Length",
    "in": "header",
    "schema": {"type": "integer", "minimum": 0},
    "description": "So many bytes of the body are JSON; binary tensors follow them.",
}


def describe_routes() -> bytes:
    """Return the description, as JSON."""
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Pliant's gateway",
            "version": __version__,
            "description": "Endpoints are asked here: by the Open Inference Protocol with Triton's extensions, and "
            "by IBM's inference route. The first is spoken over gRPC, too.",
        },
        "security": [{"bearer": []}, {"auth_token": []}, {"user_token": []}],
        "paths": _paths(),
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "auth_token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "user_token": {"type": "apiKey", "in": "header", "name": "X-User-Token"},
            },
        },
    }
    return json.dumps(document).encode()


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {
        "/openapi.json": {"get": _get("This description", "Object", is_open=True)},
        "/v2": {"get": _get("What the gateway is", "Object", 401, 403, 503)},
        "/v2/health/live": {"get": _get("Whether it lives", "Object", is_open=True)},
        "/v2/health/ready": {"get": _get("Whether it takes requests", "Object", 503, is_open=True)},
        "/v2/models/stats": {"get": _get("What all models have done", "Object", 401, 403, 503)},
        "/v2/repository/index": {"post": _get("The models that there are", "Index", 401, 403, 503)},
        "/v2/repository/models/{name}/load": {"post": _change("Start an endpoint, and wait until it is ready")},
        "/v2/repository/models/{name}/unload": {"post": _change("Stop an endpoint")},
        "/dlim/v1/inference/{name}": {"post": _dlim()},
    }
    for infix, more in (("", []), ("/versions/{version}", [_NUMBER])):
        of_model = {"parameters": [_MODEL, *more]}
        path = f"/v2/models/{{name}}{infix}"
        paths[path] = {"get": _get("What a model takes and gives", "Model", *_ASKED), **of_model}
        paths[f"{path}/ready"] = {"get": _get("Whether a model takes requests", "Object", *_ASKED), **of_model}
        paths[f"{path}/config"] = {"get": _get("How a model is configured", "Object", *_ASKED), **of_model}
        paths[f"{path}/stats"] = {"get": _get("What a model has done", "Object", *_ASKED), **of_model}
        paths[f"{path}/infer"] = {"post": _infer(), **of_model}
        paths[f"{path}/generate"] = {"post": _generate({"application/json": _FLAT}), **of_model}
        paths[f"{path}/generate_stream"] = {"post": _generate({"text/event-stream": {}}), **of_model}
    return paths


def _get(summary: str, schema: str, *statuses: int, is_open: bool = False) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": _json("The answer.", schema), **_no(statuses)},
    }
    if is_open:
        described["security"] = []
    return described


def _change(summary: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": [_MODEL, _PATIENCE],
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {"200": _json("It is so.", "Object"), **_no((400, 401, 403, 404, 408, 413, 429, 503))},
    }


def _infer() -> dict[str, Any]:
    bodies = {
        "application/json": {"schema": {"$ref": "#/components/schemas/InferRequest"}},
        "application/octet-stream": {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}},
    }
    answer = {
        "description": "The outputs.",
        "headers": {
            "Pliant-Version": {"schema": {"type": "integer"}, "description": "The version that answered."},
            "Pliant-Kernel": {"schema": _TEXT, "description": "The kernel that did."},
            "Inference-Header-Content-Length": {"schema": {"type": "integer"}},
        },
        "content": {
            **bodies,
            "application/json": {"schema": {"$ref": "#/components/schemas/InferResponse"}},
            **_PARTS,
        },
    }
    return {
        "summary": "Ask a model",
        "parameters": [_PATIENCE, _JSON_LENGTH],
        "requestBody": {"required": True, "content": bodies},
        "responses": {"200": answer, **_no(_INFER)},
    }


def _generate(content: dict[str, Any]) -> dict[str, Any]:
    answer = {"description": "The outputs by their names; events, if they come in parts.", "content": content}
    return {
        "summary": "Ask a model in plain JSON by the names of its inputs",
        "parameters": [_PATIENCE],
        "requestBody": {"required": True, "content": {"application/json": _FLAT}},
        "responses": {"200": answer, **_no(_INFER)},
    }


def _dlim() -> dict[str, Any]:
    answer = {"description": "What the model answers.", "content": {"*/*": {}, **_PARTS}}
    return {
        "summary": "Ask a model in JSON of its own",
        "parameters": [_MODEL, _PATIENCE],
        "requestBody": {"required": True, "content": {"application/json": {"schema": {}}}},
        "responses": {"200": answer, **_no(_INFER)},
    }


def _no(statuses: tuple[int, ...]) -> dict[str, Any]:
    return {str(status): _json(_WORDS[status], "Error") for status in statuses}


def _json(description: str, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "content": content}
