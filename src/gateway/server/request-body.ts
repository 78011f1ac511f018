// Reads the body of a request from its socket, completely or not at all.
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import type { Shares } from "#basics/shares.ts"
import { BodyBroken, BodyCrowded, BodyTooLarge } from "../http/request.ts"

/** Bytes of all bodies in memory. Parsed and decoded, a body takes about ten times its bytes. */
const bodyBytesMax = 64 * 1024 ** 2

/**
 * Bytes of bodies of one address in memory, from their arrival until the responses end: 20 of the
 * largest batches.
 */
export const bodyBytesPerAddressMax = 8 * 1024 ** 2

/**
 * The body of a request. Fails when the body has more than `bytesMax` bytes, ends too early, or
 * exceeds the memory for bodies. The rest of a refused body is read and dropped.
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
    let taken = 0
    response.once("close", () => shares.give(account, taken))
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
      taken += part.length
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
    // After a half-close the body stays incomplete, but the client can still read a response.
    const halfClosed = () => {
      if (!request.complete) fail()
    }
    if (request.destroyed || (socket.readableEnded && !request.complete)) return fail()
    // Refuse before 100-continue: then the client does not send the body.
    if (Number(request.headers["content-length"]) > bytesMax)
      return resume(Effect.fail(new BodyTooLarge()))
    // An HTTP/1.0 client would take 100 for the final response (RFC 9110 section 10.1.1).
    if (/\b100-continue\b/i.test(request.headers.expect ?? "") && request.httpVersion !== "1.0")
      response.writeContinue()
    socket.on("end", halfClosed)
    request.on("data", take).on("end", finish).on("error", fail).on("close", fail)
    return Effect.sync(stop)
  })
