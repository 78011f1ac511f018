// Asks whether there is storage for several streams together. Asked for one after the other, a
// cluster reserves more than it has, as it places streams by figures of up to a second ago.
// Afterwards it refuses every update.
import { randomUUID } from "node:crypto"
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream"
import { isNotFound, streamNameInUse } from "../connection/responses.ts"
import { streamTooLarge } from "./stream-sizes.ts"

const probe = "BELLCAST_PROBE"
/** A start that creates streams for longer was killed. */
const probeMillisMax = 10_000

/** Another process creates streams at this moment, or was killed then. */
export class ProbeInUse extends Error {}

const remove = (jsm: JetStreamManager) =>
  jsm.streams.delete(probe).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })

/**
 * Reserves the bytes in one request, gives them back, and runs the creation of the streams. One
 * process at a time does so, as each would take the bytes of the others for used.
 */
export const withProbe = async <A>(
  jsm: JetStreamManager,
  bytes: number,
  replicas: number,
  run: () => Promise<A>
): Promise<A> => {
  const config = { name: probe, max_bytes: bytes, num_replicas: replicas }
  try {
    // Unlike any other: the server accepts the same config from several processes.
    await jsm.streams.add({ ...config, description: randomUUID() })
  } catch (error) {
    const code = error instanceof JetStreamApiError ? error.code : undefined
    // A limit of the account for one stream says nothing about all together.
    if (code === streamTooLarge) return run()
    throw code === streamNameInUse ? new ProbeInUse() : error
  }
  try {
    await jsm.streams.update(probe, { max_bytes: 1 })
    return await run()
  } finally {
    await remove(jsm)
  }
}

/** Deletes the probe of a process that was killed. */
export const removeOldProbe = async (jsm: JetStreamManager) => {
  // Without a leader, which it waits for, the stream is new.
  const info = await jsm.streams.info(probe).catch(() => undefined)
  if (info === undefined) return
  const millis = Date.parse(info.ts ?? info.created) - Date.parse(info.created)
  if (millis > probeMillisMax) await remove(jsm)
}
