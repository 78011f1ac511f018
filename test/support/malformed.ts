// Headers that anybody who may publish can store, and that nobody may trip over. A block is what
// HPUB carries before the body: latin1, one character for each byte.
import { connect, type Socket } from "node:net"

const long = 20_000

/** Blocks that are no headers, by what is wrong with them. nats-server stores all of them. */
export const malformedBlocks: Readonly<Record<string, string>> = {
  "a lone CR in a value": "NATS/1.0\r\nBellcast-Type: a\rb\r\n\r\n",
  "a lone LF in a value": "NATS/1.0\r\nBellcast-Type: a\nb\r\n\r\n",
  "a lone CR at the end of a value": "NATS/1.0\r\nBellcast-TTL: 60\r\r\n\r\n",
  "a lone CR before a value": "NATS/1.0\r\nBellcast-TTL: \r60\r\n\r\n",
  "a CR in a name": "NATS/1.0\r\nBell\rcast: a\r\n\r\n",
  "a blank in a name": "NATS/1.0\r\nBellcast Type: a\r\n\r\n",
  "a blank after a name": "NATS/1.0\r\nBellcast-Type : a\r\n\r\n",
  "a tab in a name": "NATS/1.0\r\nBellcast\tType: a\r\n\r\n",
  "a byte above 127 in a name": "NATS/1.0\r\nB\xe9: a\r\n\r\n",
  "a NUL in a name": "NATS/1.0\r\nB\0: a\r\n\r\n",
  "no name": "NATS/1.0\r\n: a\r\n\r\n",
  "no colon": "NATS/1.0\r\nBellcast-Type\r\n\r\n",
  "a folded line": "NATS/1.0\r\nBellcast-TTL: 6\r\n 0\r\n\r\n",
  "an empty line between": "NATS/1.0\r\n\r\nBellcast-TTL: 60\r\n\r\n",
  "line ends of one LF": "NATS/1.0\nBellcast-TTL: 60\n\n",
  "no end": "NATS/1.0\r\nBellcast-TTL: 60",
  "an end of one line": "NATS/1.0\r\nBellcast-TTL: 60\r\n",
  "another protocol": "HTTP/1.1\r\nBellcast-TTL: 60\r\n\r\n",
  "no protocol": "Bellcast-TTL: 60\r\n\r\n",
  "a status of its own": "404 Message Not Found\r\n\r\n",
  "an end of a batch": "204 EOB\r\n\r\n",
  "a lone CR in the first line": "NATS/1.0 \r404\r\n\r\n",
  "bytes that are no text": "\xff\xfe\x00\x80\r\n\r\n",
  "many names, then none": `NATS/1.0\r\n${"a: b\r\n".repeat(1_000)}:\r\n\r\n`,
  "many colons": `NATS/1.0\r\n${":".repeat(long)}\r\n\r\n`,
  "many blanks in a name": `NATS/1.0\r\nBellcast-Type${" ".repeat(long)}: a\r\n\r\n`,
  "many lone CRs": `NATS/1.0\r\nBellcast-Type:${"\r".repeat(long)}\r\n\r\n`
}

/** Blocks that are headers, however odd. */
export const oddBlocks: Readonly<Record<string, string>> = {
  "nothing but the end": "NATS/1.0\r\n\r\n",
  "one byte": "X",
  "two bytes": "XY",
  "another end than a line end": "NATS/1.0\r\nBellcast-TTL: 60\r\nXY",
  "a name of JavaScript": "NATS/1.0\r\n__proto__: a\r\nconstructor: b\r\n\r\n",
  "the headers of a direct read": [
    ...["NATS/1.0", "Nats-Stream: X", "Nats-Subject: evil", "Nats-Sequence: 99"],
    ...["Nats-Num-Pending: 0", "\r\n"]
  ].join("\r\n"),
  "a header twice": "NATS/1.0\r\nBellcast-TTL: 60\r\nBellcast-TTL: 61\r\n\r\n",
  "bytes above 127 in a value": "NATS/1.0\r\nX: \xc3\xa9\xff\r\n\r\n",
  "many blanks in a value": `NATS/1.0\r\nBellcast-TTL: 6${" ".repeat(long)}0\r\n\r\n`,
  "nothing but blanks in a value": `NATS/1.0\r\nBellcast-Type:${" \t".repeat(long / 2)}\r\n\r\n`,
  "many names": `NATS/1.0\r\n${Array.from({ length: 4_000 }, (_, n) => `a${n}:\r\n`).join("")}\r\n`
}

/** A client that writes the bytes of the protocol itself: libraries refuse what is malformed. */
export interface RawClient extends AsyncDisposable {
  /** `reply`: the subject for a response; undefined: none is wanted. */
  readonly send: (subject: string, block: string, body: string, reply?: string) => void
  /** Resolves when the server has taken all that was sent. */
  readonly flush: () => Promise<void>
}

const opened = (url: URL): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname, () => resolve(socket))
    socket.once("error", reject)
  })

/** `url` may have a user and a password. */
export const connectRaw = async (natsUrl: string): Promise<RawClient> => {
  const url = new URL(natsUrl)
  const socket = await opened(url)
  const waiting: Array<() => void> = []
  let refused: string | undefined
  socket.on("data", (data) => {
    for (const line of data.toString("latin1").split("\r\n")) {
      if (line === "PONG") waiting.shift()?.()
      if (line === "PING") socket.write("PONG\r\n")
      if (line.startsWith("-ERR")) refused = line
    }
  })
  const login = { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) }
  const options = { verbose: false, headers: true, no_responders: true }
  socket.write(`CONNECT ${JSON.stringify({ ...options, ...(login.user === "" ? {} : login) })}\r\n`)
  const flush = () =>
    new Promise<void>((resolve, reject) => {
      waiting.push(() => (refused === undefined ? resolve() : reject(new Error(refused))))
      socket.write("PING\r\n")
    })
  await flush()
  return {
    send: (subject, block, body, reply = "") => {
      const [head, text] = [Buffer.from(block, "latin1"), Buffer.from(body)]
      const sizes = `${head.length} ${head.length + text.length}`
      socket.write(`HPUB ${subject} ${reply} ${sizes}\r\n`)
      socket.write(Buffer.concat([head, text, Buffer.from("\r\n")]))
    },
    flush,
    [Symbol.asyncDispose]: async () => {
      socket.destroy()
    }
  }
}
