// A mail server on loopback for the broker of a test: keeps the codes and links that it gets.
import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { createInterface } from "node:readline"
import { until } from "#test/client.ts"

/** A mail of a Portier broker. */
export interface Mail {
  readonly to: string
  readonly code: string
  readonly link: string
}

export interface MailSink extends AsyncDisposable {
  /** `host:port` of the server. */
  readonly address: string
  readonly mails: ReadonlyArray<Mail>
  /** The next mail to an address that `read` has not returned yet. */
  readonly read: (to: string) => Promise<Mail>
}

/** The plain text of a message, by the encoding of its part (RFC 2045 section 6). */
const textOf = (message: string): string => {
  const [, headers = "", body = ""] =
    /(content-type: text\/plain.*?)\r\n\r\n(.*?)\r\n--/is.exec(message) ?? []
  if (/encoding: base64/i.test(headers)) return Buffer.from(body, "base64").toString("utf8")
  if (!/encoding: quoted-printable/i.test(headers)) return body
  const bytes = body
    .replaceAll("=\r\n", "")
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, "latin1").toString("utf8")
}

const mailOf = (to: string, message: string): Mail => {
  const text = textOf(message)
  const [code = ""] = /\b[a-z0-9]{6} [a-z0-9]{6}\b/.exec(text) ?? []
  const [link = ""] = /https?:\/\/\S+\/confirm\?\S+/.exec(text) ?? []
  if (code === "" || link === "") throw new Error(`no mail of a broker:\n${message}`)
  return { to, code, link }
}

/** Speaks as much of SMTP (RFC 5321) as a mail needs. */
const serve = async (socket: Socket, keep: (mail: Mail) => void) => {
  const reply = (line: string) => socket.write(`${line}\r\n`)
  reply("220 localhost")
  let to = ""
  let message: Array<string> | undefined
  for await (const line of createInterface({ input: socket })) {
    if (message !== undefined && line !== ".") message.push(line.replace(/^\./, ""))
    else if (message !== undefined) {
      keep(mailOf(to, message.join("\r\n")))
      message = undefined
      reply("250 kept")
    } else if (/^rcpt to:/i.test(line)) {
      to = /<(.*)>/.exec(line)?.[1] ?? ""
      reply("250 to")
    } else if (/^data/i.test(line)) {
      message = []
      reply("354 go on")
    } else if (/^quit/i.test(line)) socket.end("221 bye\r\n")
    else reply("250 localhost")
  }
}

export const startMailSink = async (): Promise<MailSink> => {
  const mails: Array<Mail> = []
  const unread: Array<Mail> = []
  const server = createServer((socket) => {
    const keep = (mail: Mail) => {
      mails.push(mail)
      unread.push(mail)
    }
    serve(socket, keep).catch((error) => socket.destroy(error))
    socket.on("error", (error) => process.stderr.write(`mail: ${error.message}\n`))
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    mails,
    read: async (to) => {
      const isFor = (mail: Mail) => mail.to === to
      await until(async () => unread.some(isFor), Boolean)
      return unread.splice(unread.findIndex(isFor), 1)[0]!
    },
    [Symbol.asyncDispose]: async () => {
      server.close()
      await once(server, "close")
    }
  }
}
