// Sends an ApiResponse as an HTTP response, within the limits on responses that clients do not
// read.
import type { IncomingMessage, ServerResponse } from "node:http"
import { reasonPhrase } from "../http/error-table.ts"
import type { ApiResponse } from "../http/request.ts"
import { constantHeaders } from "../http/response-headers.ts"
import type { UnreadResponses } from "./bounds/unread.ts"

const json = "application/json; charset=UTF-8"

const textOf = ({ body, encoded, jsonText, text }: ApiResponse) =>
  encoded ?? text ?? jsonText ?? (body === undefined ? undefined : JSON.stringify(body))

type Text = ReturnType<typeof textOf>

const headersOf = ({ headers }: ApiResponse, text: Text) => ({
  ...constantHeaders,
  ...(text === undefined
    ? {}
    : { "Content-Type": json, "Content-Length": Buffer.byteLength(text) }),
  ...headers
})

/** A client that sends for longer may lose its response. */
const readOnMillis = 2_000

/**
 * Ends a response, and then its connection, when the rest of the request's body was read and
 * dropped. If a socket is closed with unread bytes, its peer is reset and loses the response.
 */
const endLater = (request: IncomingMessage, response: ServerResponse, content: Text): void => {
  if (content === undefined) response.flushHeaders()
  else response.write(content)
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, readOnMillis)
  request.once("close", end)
  request.resume()
}

const write = (
  request: IncomingMessage,
  response: ServerResponse,
  apiResponse: ApiResponse,
  text: Text
): void => {
  const { status } = apiResponse
  response.writeHead(status, reasonPhrase(status), headersOf(apiResponse, text))
  const content = request.method === "HEAD" ? undefined : text
  if (request.complete || response.shouldKeepAlive) response.end(content)
  else endLater(request, response, content)
}

export interface Recipient {
  /** The key of the client's limits. */
  readonly account: string
  /** The response that is sent instead when there is no memory for a response. */
  readonly insteadWhenBusy: () => ApiResponse
}

/** Sends a response. On an error of Node.js it closes the connection. */
export const sendResponse = (
  request: IncomingMessage,
  response: ServerResponse,
  apiResponse: ApiResponse,
  unread: UnreadResponses,
  { account, insteadWhenBusy }: Recipient
): void => {
  const { socket } = request
  const text = textOf(apiResponse)
  try {
    if (unread.add(socket, account, Buffer.byteLength(text ?? ""))) {
      response.once("close", () => unread.remove(socket))
      write(request, response, apiResponse, text)
    } else {
      const instead = insteadWhenBusy()
      write(request, response, instead, textOf(instead))
    }
  } catch {
    // Node.js rejected a header. Close: the client must not wait for a response that never comes.
    socket.destroy()
  }
}
