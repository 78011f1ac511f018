// POST to push services: kept-alive connections per origin, every wait bounded, answers read no further than needed. No redirects.
import { Context, Effect, Layer } from "effect"
import { Pool } from "undici"
import { Settings } from "#config"
import { makeKept } from "../kept.ts"
import type { Answer } from "./classify.ts"
import { checkedLookup } from "./egress.ts"

const connectMillis = 5_000
const keepAliveMillis = 60_000
/** An error's body is searched for a few words; no more of it is kept. */
const bodyCharsMax = 2_048
/** A body longer than this closes the connection. */
const bodyBytesMax = 65_536
/** Pools kept at once; with the default allow-list there are a handful of hosts. */
const originsMax = 1_000

export interface Request {
  readonly origin: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
}

export class PushClient extends Context.Service<
  PushClient,
  {
    /** Never fails: what goes wrong is an answer too. */
    readonly post: (request: Request) => Effect.Effect<Answer>
  }
>()("bellcast/delivery/PushClient") {
  static readonly layer = Layer.effect(
    PushClient,
    Effect.gen(function* () {
      const { allowLoopbackEndpoints, connectionsPerOrigin, http2, pushTimeoutMillis } =
        yield* Settings
      const totalMillis = connectMillis + 2 * pushTimeoutMillis
      const pools = makeKept<Pool>(originsMax, (pool) => void pool.close())
      yield* Effect.addFinalizer(() =>
        Effect.promise(() => Promise.all([...pools.all()].map((pool) => pool.destroy())))
      )
      const options = {
        connections: connectionsPerOrigin,
        allowH2: http2,
        keepAliveTimeout: keepAliveMillis,
        headersTimeout: pushTimeoutMillis,
        bodyTimeout: pushTimeoutMillis / 2,
        connect: { timeout: connectMillis, lookup: checkedLookup(allowLoopbackEndpoints) as never }
      }
      const poolOf = (origin: string) => pools.of(origin, () => new Pool(origin, options))
      const post = ({ body, headers, origin, path }: Request) =>
        Effect.callback<Answer>((resume) => {
          let status = 0
          let answered: Record<string, string> = {}
          let text = ""
          let bytes = 0
          const finish = () => resume(Effect.succeed({ status, headers: answered, body: text }))
          const startedAt = performance.now()
          const isLate = () => performance.now() - startedAt > totalMillis
          try {
            poolOf(origin).dispatch(
              { method: "POST", path, headers, body: body ?? null },
              {
                onRequestStart: () => {},
                onResponseStart: (controller, code, received) => {
                  // Early hints and the like: the answer is still to come. Each of them starts undici's time-out anew.
                  if (code < 200) {
                    if (isLate())
                      controller.abort(
                        Object.assign(new Error("no answer"), { code: "UND_ERR_ABORTED" })
                      )
                    return
                  }
                  status = code
                  // A header that came twice is a list.
                  answered = Object.fromEntries(
                    Object.entries(received).map(([name, value]) => [name, String(value)])
                  )
                  // The status of a success says it all; its body is drained behind our back.
                  if (code >= 200 && code < 300) finish()
                  // Misdirected (RFC 9110 section 15.5.20): what is sent again must not go the same way.
                  if (code === 421) controller.abort(new Error("misdirected"))
                },
                onResponseData: (controller, chunk) => {
                  bytes += chunk.length
                  if (text.length < bodyCharsMax)
                    text += chunk.toString("latin1").slice(0, bodyCharsMax - text.length)
                  // undici's time-outs watch for silence; a body may also come byte by byte, for ever.
                  if (bytes > bodyBytesMax || isLate()) controller.abort(new Error("body too long"))
                },
                onResponseEnd: finish,
                onResponseError: (_controller, error) => {
                  // A body that breaks off does not change the status that came before it.
                  if (status !== 0) finish()
                  else
                    resume(
                      Effect.succeed({ error: (error as NodeJS.ErrnoException).code ?? "UNKNOWN" })
                    )
                }
              }
            )
          } catch (error) {
            resume(Effect.succeed({ error: (error as NodeJS.ErrnoException).code ?? "UNKNOWN" }))
          }
        })
      return PushClient.of({ post })
    })
  )
}
