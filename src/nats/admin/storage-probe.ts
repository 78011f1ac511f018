// Finds out whether NATS has storage for several streams together. A cluster places each stream by
// figures of up to a second ago: streams that are created one after the other reserve more than its
// servers have, and then the servers refuse every update.
import { randomUUID } from "node:crypto"
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream"
import { isNotFound, streamNameInUse } from "../connection/errors.ts"
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
 * Reserves the bytes in one request, gives them back, and runs `run`, which creates the streams.
 * Fails with ProbeInUse while another process does the same: each would take the bytes of the other
 * for used.
 */
export const withProbe = async <A>(
  jsm: JetStreamManager,
  bytes: number,
  replicas: number,
  run: () => Promise<A>
): Promise<A> => {
  const config = { name: probe, max_bytes: bytes, num_replicas: replicas }
  try {
    // With equal configs the server would accept the probes of two processes.
    await jsm.streams.add({ ...config, description: randomUUID() })
  } catch (error) {
    const code = error instanceof JetStreamApiError ? error.code : undefined
    // The account limits the bytes of one stream. The streams together may still fit.
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
  // The request fails while the stream has no leader yet: then it is new.
  const info = await jsm.streams.info(probe).catch(() => undefined)
  if (info === undefined) return
  const millis = Date.parse(info.ts ?? info.created) - Date.parse(info.created)
  if (millis > probeMillisMax) await remove(jsm)
}
