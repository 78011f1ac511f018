// Copies of streams as `nats backup` makes and restores them: through the
// snapshot API of JetStream, with consumers.
import type { StreamInfo } from "@nats-io/jetstream"
import { createInbox } from "@nats-io/transport-node"
import type { NatsAdmin } from "./nats-admin.ts"

interface Copy {
  readonly config: StreamInfo["config"]
  readonly state: StreamInfo["state"]
  readonly chunks: ReadonlyArray<Uint8Array>
}

/** Copies of streams by name. */
export type Copies = Readonly<Record<string, Copy>>

const chunkBytes = 128 * 1024
const requestMillis = 5_000

const api = async <A>({ nc }: NatsAdmin, subject: string, body: unknown): Promise<A> => {
  const reply = await nc.request(`$JS.API.STREAM.${subject}`, JSON.stringify(body), {
    timeout: requestMillis
  })
  const response = reply.json<A & { readonly error?: { readonly description: string } }>()
  if (response.error !== undefined) throw new Error(`${subject}: ${response.error.description}`)
  return response
}

const backUpStream = async (admin: NatsAdmin, stream: string): Promise<Copy> => {
  const deliver_subject = createInbox()
  const messages = admin.nc.subscribe(deliver_subject)
  const { config, state } = await api<StreamInfo>(admin, `SNAPSHOT.${stream}`, {
    deliver_subject,
    chunk_size: chunkBytes
  })
  const chunks: Array<Uint8Array> = []
  // The last message is empty. Each of the others is acknowledged.
  for await (const msg of messages) {
    if (msg.data.length === 0) break
    chunks.push(msg.data)
    msg.respond()
  }
  return { config, state, chunks }
}

const restoreStream = async (admin: NatsAdmin, stream: string, copy: Copy): Promise<void> => {
  await admin.jsm.streams.delete(stream).catch(() => false)
  const { config, state } = copy
  const { deliver_subject } = await api<{ readonly deliver_subject: string }>(
    admin,
    `RESTORE.${stream}`,
    { config, state }
  )
  for (const chunk of copy.chunks)
    await admin.nc.request(deliver_subject, chunk, { timeout: requestMillis })
  await admin.nc.request(deliver_subject, undefined, { timeout: requestMillis })
}

/** Copies every stream and bucket, one after the other. */
export const backUp = async (admin: NatsAdmin): Promise<Copies> => {
  const copies: Record<string, Copy> = {}
  for await (const { config } of admin.jsm.streams.list())
    copies[config.name] = await backUpStream(admin, config.name)
  return copies
}

/** Puts back streams in place of those that are there. */
export const restore = async (admin: NatsAdmin, copies: Copies): Promise<void> => {
  for (const [stream, copy] of Object.entries(copies)) await restoreStream(admin, stream, copy)
}
