// Sends the events of an ApiResponse while they come, within the limits on responses that clients
// do not read. A reader who is slower than the events delays them: only one is in memory.
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { reasonPhrase } from "../http/error-table.ts"
import type { ApiResponse, Write } from "../http/request.ts"
import { constantHeaders } from "../http/response-headers.ts"
import type { UnreadResponses } from "./bounds/unread.ts"

/** Returns when the text has left the memory of this process. */
const writeTo = (
  response: ServerResponse,
  unread: UnreadResponses,
  account: string,
  flushed: Latch.Latch
): Write => {
  const { socket } = response
  const turns = Semaphore.makeUnsafe(1)
  const begin = (text: string) => {
    if (socket === null || response.destroyed) return
    // Too much is unread: end this stream. Its client comes back by itself.
    if (!unread.add(socket, account, Buffer.byteLength(text))) return void response.destroy()
    flushed.closeUnsafe()
    response.write(text, () => {
      unread.remove(socket)
      flushed.openUnsafe()
    })
  }
  return (text) =>
    flushed.await.pipe(
      Effect.andThen(Effect.sync(() => begin(text))),
      Effect.andThen(flushed.await),
      turns.withPermit
    )
}

/** Sends the head of a response, and its events until they end or `leaving` returns. */
export const sendEvents = (
  request: IncomingMessage,
  response: ServerResponse,
  { events, headers, status }: ApiResponse & Required<Pick<ApiResponse, "events">>,
  unread: UnreadResponses,
  { account, leaving }: { readonly account: string; readonly leaving: Effect.Effect<void> }
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { socket } = request
    // A client that leaves closes its half first, and this half only when something is written.
    const close = () => void socket.destroy()
    socket.once("end", close)
    response.once("close", () => {
      socket.off("end", close)
      unread.remove(socket)
    })
    if (socket.readableEnded) close()
    response.writeHead(status, reasonPhrase(status), { ...constantHeaders, ...headers })
    response.flushHeaders()
    const flushed = Latch.makeUnsafe(true)
    return events(writeTo(response, unread, account, flushed)).pipe(
      Effect.raceFirst(leaving),
      Effect.andThen(
        Effect.sync(() => {
          // A client that reads nothing would not read the end either.
          if (response.writableLength > 0) socket.destroy()
          else response.end()
        })
      )
    )
  })
