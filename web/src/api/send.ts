/** Sends what is large, and tells how far it is: `fetch` does not. Refusals are thrown as everywhere. */
import { CONSOLE_HEADER, refuse } from "./client";
import { addressOf } from "./place";
import { Unreachable } from "./problem";

export interface Sending {
  method: "POST" | "PUT";
  /** A route of the server, with its query. */
  path: string;
  body: FormData | Blob;
  headers?: Readonly<Record<string, string>>;
  /** Called with the bytes that have gone and all of them. */
  onProgress?: (sent: number, total: number) => void;
  signal?: AbortSignal;
}

export function send<A>(sending: Sending): Promise<A> {
  return new Promise((take, fail) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    request.open(sending.method, addressOf(sending.path));
    for (const [name, value] of Object.entries({ ...CONSOLE_HEADER, ...sending.headers })) {
      request.setRequestHeader(name, value);
    }
    request.upload.onprogress = (event) => sending.onProgress?.(event.loaded, event.total);
    request.onerror = () => fail(new Unreachable());
    request.onabort = () => fail(new DOMException("it was stopped", "AbortError"));
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) take(JSON.parse(request.responseText) as A);
      else void refuse(answerOf(request), sending.path).catch(fail);
    };
    request.onloadend = () => sending.signal?.removeEventListener("abort", stop);
    if (sending.signal?.aborted) stop();
    sending.signal?.addEventListener("abort", stop);
    request.send(sending.body);
  });
}

function answerOf(request: XMLHttpRequest): Response {
  const after = request.getResponseHeader("Retry-After");
  return new Response(request.responseText, {
    status: request.status,
    ...(after !== null && { headers: { "Retry-After": after } }),
  });
}
