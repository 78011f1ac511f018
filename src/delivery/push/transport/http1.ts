// HTTP/1.1 to one push service: undici's pool opens connections as they are needed and closes idle
// ones.
import { type buildConnector, Pool } from "undici"
import { codeOf, type Done, Exchange, type Limits, type Request } from "./exchange.ts"

const keepAliveMillis = 60_000

export interface Http1 {
  readonly post: (request: Request, done: Done) => void
  /** Ends once the pushes under way have their responses. */
  readonly close: () => Promise<void>
  readonly destroy: () => Promise<void>
}

export const makeHttp1 = (
  origin: string,
  connections: number,
  limits: Limits,
  connect: buildConnector.connector
): Http1 => {
  const pool = new Pool(origin, {
    connections,
    allowH2: false,
    keepAliveTimeout: keepAliveMillis,
    headersTimeout: limits.responseMillis,
    bodyTimeout: limits.silenceMillis,
    connect
  })

  const post = ({ body, headers, path }: Request, done: Done) => {
    // Over HTTP/1.1 no reply is "unprocessed": nothing tells what a broken connection has
    // processed.
    const exchange = new Exchange(limits.totalMillis, (reply) => {
      if (reply !== "unprocessed") done(reply)
    })
    const handler = {
      onRequestStart: () => {},
      onResponseStart: (
        controller: { readonly abort: (reason: Error) => void },
        status: number,
        received: Readonly<Record<string, unknown>>
      ) => {
        if (status < 200) {
          // Early hints and the like. Each of them restarts undici's time-out.
          if (exchange.isLate)
            controller.abort(Object.assign(new Error("no response"), { code: "UND_ERR_ABORTED" }))
          return
        }
        exchange.begin(status, received)
        // Misdirected (RFC 9110 section 15.5.20): the next try must take another connection.
        if (status === 421) controller.abort(new Error("misdirected"))
      },
      onResponseData: (controller: { readonly abort: (reason: Error) => void }, chunk: Buffer) => {
        if (!exchange.add(chunk)) controller.abort(new Error("body too long"))
      },
      onResponseEnd: () => exchange.finish(),
      onResponseError: (_controller: unknown, error: Error) => exchange.fail(codeOf(error))
    }
    try {
      pool.dispatch({ method: "POST", path, headers, body: body ?? null }, handler)
    } catch (error) {
      exchange.fail(codeOf(error))
    }
  }

  return { post, close: () => pool.close(), destroy: () => pool.destroy() }
}
