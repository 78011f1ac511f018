// An Answer becomes an HTTP response, within the bounds on answers that nobody reads.
import type { IncomingMessage, ServerResponse } from "node:http"
import { reasonPhrase } from "../http/reason-phrase.ts"
import type { ApiResponse } from "../http/request.ts"
import { constantHeaders } from "../http/response-headers.ts"
import type { UnreadResponses } from "./unread.ts"

const json = "application/json; charset=UTF-8"

const textOf = ({ body, html, jsonText }: ApiResponse): string | undefined =>
  html ?? jsonText ?? (body === undefined ? undefined : JSON.stringify(body))

const headersOf = ({ headers, html }: ApiResponse, text: string | undefined) => ({
  ...constantHeaders,
  ...headers,
  ...(text === undefined
    ? {}
    : {
        ...(html === undefined ? { "Content-Type": json } : {}),
        "Content-Length": Buffer.byteLength(text)
      })
})

const write = (
  request: IncomingMessage,
  response: ServerResponse,
  answer: ApiResponse,
  text: string | undefined
): void => {
  response.writeHead(answer.status, reasonPhrase(answer.status), headersOf(answer, text))
  response.end(request.method === "HEAD" ? undefined : text)
}

export interface Recipient {
  /** What the client is counted under. */
  readonly account: string
  /** What it is told instead when there is no room for an answer. */
  readonly busy: () => ApiResponse
}

/** Sends an answer. What cannot be sent closes the connection. */
export const sendResponse = (
  request: IncomingMessage,
  response: ServerResponse,
  answer: ApiResponse,
  unread: UnreadResponses,
  { account, busy }: Recipient
): void => {
  const { socket } = request
  const text = textOf(answer)
  try {
    if (unread.hold(socket, account, Buffer.byteLength(text ?? ""))) {
      response.once("close", () => unread.taken(socket))
      write(request, response, answer, text)
    } else {
      const instead = busy()
      write(request, response, instead, textOf(instead))
    }
  } catch {
    // A header that Node refuses: the client must not wait for an answer that never comes.
    socket.destroy()
  }
}
