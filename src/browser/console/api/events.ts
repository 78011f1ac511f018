// Follows a broadcast while it runs: server-sent events, read by fetch, as EventSource sends no
// login. Comes back after each end of the stream, with the id of the last event.
import { Problem, send } from "./client.ts"
import { sessions } from "./session.ts"
import type { WholeBroadcast } from "./shapes.ts"

/** The service sends a comment every 15 s: after twice that and a bit, the connection is dead. */
const silenceMaxMillis = 35_000
const againMillis = [500, 1_000, 2_000, 5_000, 10_000] as const

const wait = (millis: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(end, millis)
    signal.addEventListener("abort", end, { once: true })
  })

/** Until somebody logged in again. */
const loggedIn = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const look = () => {
      const { hasEnded, phase } = sessions.value
      if (!signal.aborted && (hasEnded || phase !== "in")) return
      stop()
      signal.removeEventListener("abort", look)
      resolve()
    }
    const stop = sessions.listen(look)
    signal.addEventListener("abort", look)
    look()
  })

interface Watcher {
  readonly onState: (broadcast: WholeBroadcast) => void
  /** The stream broke, and is tried again; undefined: it is there. */
  readonly onProblem: (problem: Problem | undefined) => void
}

/**
 * Until `signal` ends it, the broadcast is finished, or it cannot be seen any more. Over the end of
 * a login it waits for the next one.
 */
export const follow = async (id: string, watcher: Watcher, signal: AbortSignal): Promise<void> => {
  const place: Place = { id, last: undefined, failures: 0 }
  while (!signal.aborted) {
    const isOver = await followOnce(place, watcher, signal).catch((cause: unknown) => {
      if (signal.aborted) return true
      const problem = cause instanceof Problem ? cause : new Problem("offline")
      watcher.onProblem(problem)
      return [403, 404].includes(problem.status)
    })
    if (isOver) return
    await loggedIn(signal)
    await wait(againMillis[Math.min(place.failures, againMillis.length - 1)]!, signal)
    place.failures += 1
  }
}

interface Place {
  readonly id: string
  /** The id of the last event. */
  last: string | undefined
  /** Ends of the stream since the last event. */
  failures: number
}

/** Whether nothing comes any more. */
const followOnce = async (place: Place, watcher: Watcher, signal: AbortSignal) => {
  const since = place.last === undefined ? {} : { "Last-Event-ID": place.last }
  const { body, status } = await send(`broadcasts/${place.id}/events`, {
    signal,
    headers: { Accept: "text/event-stream", ...since }
  })
  if (status === 204 || body === null) return true
  watcher.onProblem(undefined)
  for await (const event of eventsOf(body)) {
    place.failures = 0
    place.last = event.id ?? place.last
    watcher.onState(event.broadcast)
    if (event.broadcast.finished) return true
  }
  return false
}

interface Event {
  readonly id: string | undefined
  readonly broadcast: WholeBroadcast
}

async function* eventsOf(body: ReadableStream<BufferSource>): AsyncGenerator<Event> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  try {
    for (;;) {
      const part = await withinSilence(reader.read())
      if (part.done) return
      const events = (text + part.value).split("\n\n")
      text = events.pop() ?? ""
      for (const each of events) {
        const [, data] = /^data: (.*)$/m.exec(each) ?? []
        const [, id] = /^id: (.*)$/m.exec(each) ?? []
        if (data) yield { id, broadcast: JSON.parse(data) as WholeBroadcast }
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

const withinSilence = <T>(read: Promise<T>): Promise<T> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Problem("offline")), silenceMaxMillis)
  })
  return Promise.race([read, silence]).finally(() => clearTimeout(timer))
}
