// The rest of an erased user: in each message, by sequence, and in the files of nats-server.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { NatsAdmin } from "./nats-admin.ts"

export interface Left {
  readonly seq: number
  readonly subject: string
  /** Subject, headers and body. */
  readonly text: string
}

/** All messages of a stream that contain one of these texts, read by sequence. */
const messagesWith = async (
  { jsm }: NatsAdmin,
  stream: string,
  texts: ReadonlyArray<string>
): Promise<ReadonlyArray<Left>> => {
  const { state } = await jsm.streams.info(stream)
  const found: Array<Left> = []
  for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
    const stored = await jsm.streams.getMessage(stream, { seq }).catch(() => null)
    if (stored === null) continue
    const text = `${stored.subject} ${JSON.stringify([...stored.header])} ${stored.string()}`
    if (texts.some((each) => text.includes(each)))
      found.push({ seq, subject: stored.subject, text })
  }
  return found
}

const streams = [
  "BELLCAST_LOG",
  "KV_bellcast_subscriptions",
  "KV_bellcast_registrations",
  "KV_bellcast_channels",
  "KV_bellcast_permissions",
  "KV_bellcast_drafts"
]

/** These expire: what they have under the pseudonym stays until then. */
const expiring = ["BELLCAST_WORK", "KV_bellcast_cache"]

const messagesIn = async (
  admin: NatsAdmin,
  names: ReadonlyArray<string>,
  texts: ReadonlyArray<string>
) => (await Promise.all(names.map((stream) => messagesWith(admin, stream, texts)))).flat()

/** All messages of LOG and of buckets, but for `cache`, that contain one of these texts. */
export const messagesOf = (admin: NatsAdmin, texts: ReadonlyArray<string>) =>
  messagesIn(admin, streams, texts)

/** As `messagesOf`, in WORK and in `cache`. */
export const expiringOf = (admin: NatsAdmin, texts: ReadonlyArray<string>) =>
  messagesIn(admin, expiring, texts)

/** How often a text stands in the files below a folder, by stream. */
export const inFiles = (folder: string, text: string): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    let bytes = ""
    try {
      bytes = readFileSync(join(folder, name), "latin1")
    } catch {
      // A folder, or a file that nats-server has removed since.
    }
    const count = bytes.split(text).length - 1
    const stream = /(?:streams|_js_)\/([^/]+)/.exec(name)?.[1] ?? name
    if (count > 0) counts[stream] = (counts[stream] ?? 0) + count
  }
  return counts
}
