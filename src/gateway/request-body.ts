// Reads a request's body off its socket, whole or not at all.
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect } from "effect"
import { BodyBroken, BodyTooLarge } from "./ask.ts"

/** The body of a request, if it has at most so many bytes and comes to its end. What is left of a refused one is dropped. */
export const readBytes = (
  request: IncomingMessage,
  response: ServerResponse,
  bytesMax: number
): Effect.Effect<Uint8Array, BodyTooLarge | BodyBroken> =>
  Effect.callback((resume) => {
    const parts: Array<Buffer> = []
    let size = 0
    const stop = () =>
      request.off("data", take).off("end", finish).off("error", fail).off("close", fail)
    const take = (part: Buffer) => {
      size += part.length
      if (size <= bytesMax) return void parts.push(part)
      stop().resume()
      resume(Effect.fail(new BodyTooLarge()))
    }
    const finish = () => {
      stop()
      resume(Effect.succeed(parts.length === 1 ? parts[0]! : Buffer.concat(parts)))
    }
    const fail = () => {
      stop()
      resume(Effect.fail(new BodyBroken()))
    }
    if (request.destroyed) return fail()
    // Nobody needs to send what is refused for the length it announces.
    if (Number(request.headers["content-length"]) > bytesMax)
      return resume(Effect.fail(new BodyTooLarge()))
    // Its client waits for this word; one of HTTP/1.0 would take it for the answer (RFC 9110 section 10.1.1).
    if (/\b100-continue\b/i.test(request.headers.expect ?? "") && request.httpVersion !== "1.0")
      response.writeContinue()
    request.on("data", take).on("end", finish).on("error", fail).on("close", fail)
    return Effect.sync(stop)
  })
