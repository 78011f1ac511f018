// Reads a request's body off its socket, whole or not at all.
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect } from "effect"
import { BodyBroken, BodyCrowded, BodyTooLarge } from "../http/request.ts"
import type { Shares } from "./shares.ts"

/** The same for all addresses. Parsed and decoded, a body takes some ten times its bytes. */
const bodyBytesMax = 64 * 1024 ** 2

/**
 * Bytes of bodies that one address may have in hand, from their arrival until their requests are
 * answered: 20 of the largest batches.
 */
export const bodyBytesPerAddressMax = 8 * 1024 ** 2

/**
 * The body of a request, if it has at most `bytesMax` bytes, comes to its end, and there is room for
 * it. The rest of a refused body is read and dropped.
 */
export const readBytes = (
  request: IncomingMessage,
  response: ServerResponse,
  bytesMax: number,
  shares: Shares,
  account: string
): Effect.Effect<Uint8Array, BodyTooLarge | BodyBroken | BodyCrowded> =>
  Effect.callback((resume) => {
    const parts: Array<Buffer> = []
    let size = 0
    let held = 0
    response.once("close", () => shares.give(account, held))
    const { socket } = request
    const stop = () => {
      socket.off("end", halfClosed)
      return request.off("data", take).off("end", finish).off("error", fail).off("close", fail)
    }
    const drop = (why: BodyTooLarge | BodyCrowded) => {
      parts.length = 0
      stop().resume()
      resume(Effect.fail(why))
    }
    const take = (part: Buffer) => {
      size += part.length
      if (size > bytesMax) return drop(new BodyTooLarge())
      if (!shares.take(account, part.length)) return drop(new BodyCrowded({ by: "address" }))
      held += part.length
      if (shares.total() > bodyBytesMax) return drop(new BodyCrowded({ by: "all" }))
      parts.push(part)
    }
    const finish = () => {
      stop()
      resume(Effect.succeed(parts.length === 1 ? parts[0]! : Buffer.concat(parts)))
    }
    const fail = () => {
      stop()
      resume(Effect.fail(new BodyBroken()))
    }
    // A client that has closed its half sends no more; it can still read an answer.
    const halfClosed = () => {
      if (!request.complete) fail()
    }
    if (request.destroyed || (socket.readableEnded && !request.complete)) return fail()
    // A client that waits for 100-continue never sends a body that is announced as too large.
    if (Number(request.headers["content-length"]) > bytesMax)
      return resume(Effect.fail(new BodyTooLarge()))
    // A client of HTTP/1.0 would take it for the answer (RFC 9110 section 10.1.1).
    if (/\b100-continue\b/i.test(request.headers.expect ?? "") && request.httpVersion !== "1.0")
      response.writeContinue()
    socket.on("end", halfClosed)
    request.on("data", take).on("end", finish).on("error", fail).on("close", fail)
    return Effect.sync(stop)
  })
