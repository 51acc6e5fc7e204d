"""A bare echo under uvicorn: `by_uvicorn.py PORT h11|httptools`. It sends the body back and looks into nothing."""

import sys
from typing import Any

import uvicorn


async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - ASGI's signature
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    is_fast = sys.argv[2] == "httptools"
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        http="httptools" if is_fast else "h11",
        loop="uvloop" if is_fast else "asyncio",
        lifespan="off",
        access_log=False,
        log_level="error",
    )
