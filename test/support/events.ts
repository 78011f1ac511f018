// Reads a stream of server-sent events, as far as Bellcast uses them.
import { basic } from "./client.ts"

export interface Event {
  readonly id: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of any shape
  readonly data: any
  /** When it arrived, by the monotonic clock. */
  readonly at: number
}

export interface Events {
  readonly status: number
  readonly headers: Headers
  /** Events that arrived so far. */
  readonly events: Array<Event>
  /** Comments that arrived so far. */
  comments: number
  /** When the stream ended. Undefined: it did not. */
  endedAt: number | undefined
  /** Resolves at the end of the stream; rejects where the connection was reset. */
  readonly ended: Promise<void>
  readonly close: () => void
}

const addTo = (stream: Events, block: string): void => {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1]
  const data = field("data")
  if (block.startsWith(":")) stream.comments += 1
  else if (data !== undefined)
    stream.events.push({
      id: field("id") ?? "",
      data: JSON.parse(data),
      at: performance.now()
    })
  else throw new Error(`no event: ${block}`)
}

const readAll = async (response: Response, stream: Events): Promise<void> => {
  let text = ""
  for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + part).split("\n\n")
    text = blocks.pop()!
    for (const block of blocks) addTo(stream, block)
  }
  if (text !== "") throw new Error(`the stream ends within an event: ${text}`)
}

/** Opens a stream as a user of `basicauth`, or with other headers. */
export const follow = async (
  url: string,
  credentials: string | Readonly<Record<string, string>> = "publisher",
  lastEventId?: string
): Promise<Events> => {
  const gone = new AbortController()
  const response = await fetch(url, {
    signal: gone.signal,
    headers: {
      ...(typeof credentials === "string" ? { authorization: basic(credentials) } : credentials),
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId })
    }
  })
  const { headers, status } = response
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true
  const stream: Events = {
    status,
    headers,
    events: [],
    comments: 0,
    endedAt: undefined,
    ended: Promise.resolve().then(async () => {
      try {
        if (isStream) await readAll(response, stream)
        else await response.text()
      } finally {
        stream.endedAt = performance.now()
      }
    }),
    close: () => gone.abort()
  }
  // A test that does not wait for the end does not fail by it.
  stream.ended.catch(() => undefined)
  return stream
}
