// Responses of the simulator. A script is a list of steps in words ("429 retry-after 2", "hang",
// "201"), one for each request.
// All words are in one table; a new kind of answer is one line there.
import type { IncomingMessage, ServerResponse } from "node:http"

/** What became of a request, as the simulator saw it. */
export type AttemptStatus = number | "hang" | "reset"

/** One parsed step. */
export interface Answer {
  readonly status: AttemptStatus
  /** Sends the answer, or breaks the connection, or does nothing at all. */
  readonly play: (request: IncomingMessage, response: ServerResponse) => void
}

type HeadersOf = () => Record<string, string>

/** An ordinary answer. The headers are asked for when it is sent, because dates move. */
export const reply = (status: number, headersOf: HeadersOf = () => ({}), body = ""): Answer => ({
  status,
  play: (_, response) => {
    response
      .writeHead(status, { ...headersOf(), "content-length": Buffer.byteLength(body) })
      .end(body)
  }
})

/** A refusal with its reason in a JSON body. */
export const refuse = (status: number, reason: string): Answer =>
  reply(
    status,
    () => ({ "content-type": "application/json" }),
    JSON.stringify({ code: status, reason })
  )

const accepted = reply(201, () => ({ location: "/message/1", ttl: "60" }))

const slow = (millis: number, answer: Answer): Answer => ({
  status: answer.status,
  play: (request, response) => {
    const timer = setTimeout(() => answer.play(request, response), millis)
    response.once("close", () => clearTimeout(timer))
  }
})

const huge: Answer = {
  status: 201,
  play: (_, response) => {
    const chunk = Buffer.alloc(64 * 1024, "x")
    const pump = () => {
      while (!response.destroyed && response.write(chunk));
    }
    response.writeHead(201).on("drain", pump)
    pump()
  }
}

const hang: Answer = { status: "hang", play: () => {} }

const reset: Answer = {
  status: "reset",
  play: ({ socket }) => {
    // Only a plain TCP socket can send RST. Over TLS the peer sees the connection close.
    if ("encrypted" in socket) socket.destroy()
    else socket.resetAndDestroy()
  }
}

const wnsThrottled: HeadersOf = () => ({
  "x-wns-status": "dropped",
  "x-wns-notificationstatus": "channelthrottled",
  "retry-after": "1"
})

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toUTCString()

const kinds: ReadonlyArray<readonly [RegExp, (first: string, second: string) => Answer]> = [
  [/^201$/, () => accepted],
  [/^(\d{3})$/, (status) => reply(Number(status))],
  [
    /^(\d{3}) retry-after-date (\d+)$/,
    (status, seconds) =>
      reply(Number(status), () => ({ "retry-after": inSeconds(Number(seconds)) }))
  ],
  [
    /^(\d{3}) retry-after (.+)$/,
    (status, value) => reply(Number(status), () => ({ "retry-after": value }))
  ],
  [
    /^(\d{3}) (x-wns-[a-z-]+: .+)$/,
    (status, header) => reply(Number(status), () => Object.fromEntries([header.split(": ")]))
  ],
  [
    /^(\d{3}) (\{.*\})$/s,
    (status, json) => reply(Number(status), () => ({ "content-type": "application/json" }), json)
  ],
  [/^redirect (\S+)$/, (location) => reply(307, () => ({ location }))],
  [/^slow (\d+)$/, (millis) => slow(Number(millis), accepted)],
  [/^slow (\d+) (.+)$/s, (millis, step) => slow(Number(millis), parseStep(step))],
  [/^huge$/, () => huge],
  [/^hang$/, () => hang],
  [/^reset$/, () => reset],
  [/^wns-throttled$/, () => reply(406, wnsThrottled)]
]

/**
 * One step in words, see `kinds`: `201`, `410`, `429 retry-after 2`, `503 retry-after Fri, 31 Dec
 * 2027 23:59:59 GMT` (header as written), `503 retry-after-date 2` (the HTTP date in 2 s), `400
 * x-wns-error-description: Ttl`, `400 {"errno":109}`, `redirect http://…`, `slow 500` (201 after
 * 500 ms), `slow 500 410`, `huge` (201, endless body), `hang` (no response), `reset` (connection
 * torn down), `wns-throttled`.
 */
export type Step = string

const parseStep = (step: Step): Answer => {
  for (const [words, make] of kinds) {
    const match = words.exec(step)
    if (match) return make(match[1] ?? "", match[2] ?? "")
  }
  throw new Error(`unknown step "${step}"`)
}

/** Each call returns the next response; the last one repeats. Throws on an unknown step. */
export const playerOf = (script: ReadonlyArray<Step> = ["201"]): (() => Answer) => {
  const answers = script.map(parseStep)
  if (answers.length === 0) throw new Error("a script has at least one step")
  let position = 0
  return () => answers[Math.min(position++, answers.length - 1)]!
}

/** Whether the push service took the message: any 2xx. */
export const delivers = (answer: Answer): boolean =>
  typeof answer.status === "number" && answer.status >= 200 && answer.status < 300
