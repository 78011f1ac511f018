// The HTTP/2 server of the push service for tests.
import { createSecureServer, type ServerHttp2Session } from "node:http2"
import type { createServer } from "node:https"
import { testCertificate } from "./tls.ts"

export interface Http2Options {
  /** Streams that a session may have at once (SETTINGS_MAX_CONCURRENT_STREAMS). */
  readonly streamsMax?: number
  /** Streams after which a session ends (GOAWAY); later ones are not processed. */
  readonly streamsPerSession?: number
}

/** Node's HTTP/2 server in its HTTP/1.1 clothes; it lacks one method. */
export const http2Server = (
  { streamsMax, streamsPerSession = Number.POSITIVE_INFINITY }: Http2Options,
  onRequest: Parameters<typeof createServer>[1]
) => {
  const sessions = new Set<ServerHttp2Session>()
  const streams = new WeakMap<object, number>()
  /**
   * Streams of a client have odd ids. GOAWAY means that streams above the last id were not
   * processed.
   */
  const isIgnored = ({ id, session }: { id?: number; session?: ServerHttp2Session }): boolean => {
    if (session === undefined || id === undefined) return false
    const count = (streams.get(session) ?? 0) + 1
    streams.set(session, count)
    if (count === streamsPerSession) session.goaway(0, id)
    return count > streamsPerSession
  }
  const settings = streamsMax === undefined ? {} : { maxConcurrentStreams: streamsMax }
  const server = createSecureServer(
    { ...testCertificate(), allowHTTP1: true, settings },
    (request, response) => {
      if (request.httpVersionMajor < 2 || !isIgnored(request.stream as never))
        onRequest?.(request as never, response as never)
    }
  )
  server.on("session", (session) =>
    sessions.add(session.once("close", () => sessions.delete(session)))
  )
  const closeAllConnections = () => {
    for (const session of sessions) session.destroy()
  }
  const fallBack = () => {
    // Node's name for the protocols that the next handshakes may choose, as they go over the wire.
    Object.assign(server, { ALPNProtocols: Buffer.from("\x08http/1.1") })
    for (const session of sessions) session.close()
  }
  return Object.assign(server, { closeAllConnections, fallBack }) as unknown as ReturnType<
    typeof createServer
  >
}
