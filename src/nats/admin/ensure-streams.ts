// Creates streams as large as the server has storage for, and updates those that differ. Shares of
// the declared sizes are tried; for several streams together, by a probe that reserves their sum.

import { randomUUID } from "node:crypto"
import { setTimeout } from "node:timers/promises"
import { isDeepStrictEqual } from "node:util"
import {
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo
} from "@nats-io/jetstream"
import { bucketNames, bucketStream, buckets, projections } from "#streams/buckets.ts"
import { allStreams } from "#streams/index.ts"
import { isNotFound, NoStorage, streamNameInUse, streamNotFound } from "../connection/errors.ts"

/** Limits of bytes that the operator set, by stream. */
export type BytesMax = Readonly<Record<string, number>>

/** Rethrows an error with another code. */
export const unlessCode =
  (code: number) =>
  (error: unknown): undefined => {
    if (!(error instanceof JetStreamApiError && error.code === code)) throw error
  }

const mebibyte = 1024 ** 2

/** The error, with what an operator can do. */
const noStorage = (named: BytesMax, { message }: JetStreamApiError) => {
  const least = Math.ceil(leastBytes(named) / mebibyte)
  const settings = Object.keys(named).map((stream) => `${stream}_BYTES_MAX`)
  const lower = settings.length === 0 ? "" : ` Or lower ${settings.join(" and ")}.`
  return new NoStorage({
    message:
      `JetStream has too little storage for the streams and buckets, which need ${least} MiB ` +
      `or more (nats-server: ${message}). Beside an embedded nats-server, free disk space or set ` +
      "BELLCAST_DATA_DIR to a folder on a larger disk: three quarters of the space are used. " +
      `Beside your own, raise its max_file_store or the limit of the account.${lower}`
  })
}

type Config = Partial<StreamConfig> & {
  readonly name: string
  readonly max_bytes: number
  readonly num_replicas: number
}

/** The config of a declared stream or bucket, with this limit of its bytes and as many copies. */
export type Sized = (bytesMax: number, replicas: number) => Config

/** Undefined: the server has no such stream. */
export const findStream = (
  jsm: JetStreamManager,
  stream: string
): Promise<StreamInfo | undefined> => jsm.streams.info(stream).catch(unlessCode(streamNotFound))

const existingOf = ({ config, state }: StreamInfo): Existing => ({
  bytesMax: config.max_bytes,
  bytes: state.bytes
})

const existingStreams = async (jsm: JetStreamManager, names: ReadonlyArray<string>) => {
  const found = new Map<string, StreamInfo>()
  for (const name of names) {
    const info = await findStream(jsm, name)
    if (info !== undefined) found.set(name, info)
  }
  return found
}

/** Servers of a cluster tell each other once a second how much storage they have left. */
const staleMillis = 2_000
const retryMillis = 200

const isRefused = (error: unknown): error is JetStreamApiError =>
  error instanceof JetStreamApiError && isNoStorage(error)

/**
 * Repeats what the server refuses for so many milliseconds: storage that was given back a moment
 * ago, or a server that has just joined the cluster, may not count yet.
 */
const whileRefused = async <A>(attempt: () => Promise<A>, waitMillis: number): Promise<A> => {
  const deadline = performance.now() + waitMillis
  while (true)
    try {
      return await attempt()
    } catch (error) {
      if (!isRefused(error) || performance.now() >= deadline) throw error
      await setTimeout(retryMillis)
    }
}

const isProjection = (name: string): boolean =>
  projections.some((bucket) => bucketStream(bucket) === name)

/** Updates a stream that differs. A server with too little storage refuses any update. */
const update = async (jsm: JetStreamManager, { config: is }: StreamInfo, declared: Config) => {
  // The server adds metadata of its own, which an update must repeat. A bucket that exists keeps
  // its form: another version may have made it again since this process has read it.
  const own = isProjection(declared.name) ? {} : declared.metadata
  const wanted = { ...declared, metadata: { ...declared.metadata, ...is.metadata, ...own } }
  const differs = Object.entries(wanted).some(
    ([key, value]) => !isDeepStrictEqual(is[key as keyof StreamConfig], value)
  )
  if (differs) await jsm.streams.update(wanted.name, wanted)
}

/**
 * Creates a stream. If it was created meanwhile or in a larger share, lowers its limit. Its copies
 * are never lowered: another process that starts may have been told to make more.
 */
const create = async (jsm: JetStreamManager, config: Config) => {
  try {
    await jsm.streams.add(config)
  } catch (error) {
    unlessCode(streamNameInUse)(error)
    const found = await jsm.streams.info(config.name)
    const bytesMax = loweredBytesMax(existingOf(found), config.max_bytes)
    const replicas = Math.max(found.config.num_replicas, config.num_replicas)
    await update(jsm, found, { ...config, max_bytes: bytesMax, num_replicas: replicas })
  }
}

const createAll = async (jsm: JetStreamManager, configs: ReadonlyArray<Config>) => {
  for (const config of configs) await create(jsm, config)
}

/** Creates streams if there is storage for all of them together. */
const createTogether = (jsm: JetStreamManager, configs: ReadonlyArray<Config>, replicas: number) =>
  withProbe(
    jsm,
    configs.reduce((sum, config) => sum + config.max_bytes, 0),
    replicas,
    async () => {
      const names = configs.map(({ name }) => name)
      // Another process has created streams since, and less storage is left.
      if ((await existingStreams(jsm, names)).size > 0) throw new ProbeInUse()
      await whileRefused(() => createAll(jsm, configs), staleMillis)
    }
  )

/** Streams as they are created together. */
interface Creation {
  readonly missing: Readonly<Record<string, Sized>>
  /** Empty streams that make room by the same share. */
  readonly untouched?: Readonly<Record<string, Sized>>
}

/**
 * Creates streams in the largest share of their declared sizes that the server has storage for.
 * `named`: limits that the operator set. Returns the share.
 */
export const createWithin = async (
  jsm: JetStreamManager,
  { missing, untouched = {} }: Creation,
  replicas: number,
  named: BytesMax
): Promise<number> => {
  let refusal: JetStreamApiError | undefined
  for (const share of shares) {
    const sizes = (streams: Readonly<Record<string, Sized>>) =>
      Object.entries(streams).map(([stream, sized]) =>
        sized(newBytesMax(stream, share, named[stream]), replicas)
      )
    const configs = sizes(missing)
    try {
      for (const config of sizes(untouched)) await create(jsm, config)
      const areSeveral = configs.length > 1
      const make = () =>
        areSeveral ? createTogether(jsm, configs, replicas) : createAll(jsm, configs)
      // Only the first share waits for room that the server does not know of yet. For several
      // streams only a cluster needs it, whose servers do not know each other's room at first.
      const waits = refusal === undefined && (!areSeveral || replicas > 1)
      await whileRefused(make, waits ? staleMillis : 0)
      return share
    } catch (error) {
      if (!isRefused(error)) throw error
      refusal = error
    }
  }
  throw noStorage(named, refusal!)
}

const ensureOnce = async (
  jsm: JetStreamManager,
  wanted: Readonly<Record<string, Sized>>,
  replicas: number,
  named: BytesMax
): Promise<number> => {
  const existing = await existingStreams(jsm, Object.keys(wanted))
  const missing: Record<string, Sized> = {}
  const untouched: Record<string, Sized> = {}
  for (const [stream, sized] of Object.entries(wanted)) {
    const found = existing.get(stream)
    if (found === undefined) missing[stream] = sized
    else {
      if (found.state.last_seq === 0) untouched[stream] = sized
      const bytesMax = existingBytesMax(existingOf(found), named[stream])
      const config = sized(bytesMax, Math.max(replicas, found.config.num_replicas))
      await whileRefused(() => update(jsm, found, config), staleMillis).catch((error: unknown) => {
        throw isRefused(error) ? noStorage(named, error) : error
      })
    }
  }
  const copies = Math.max(
    replicas,
    ...[...existing.values()].map(({ config }) => config.num_replicas)
  )
  return createWithin(jsm, { missing }, copies, named).catch((error: unknown) => {
    if (!(error instanceof NoStorage) || Object.keys(untouched).length === 0) throw error
    return createWithin(jsm, { missing, untouched }, copies, named)
  })
}

/** A probe that a killed process left is deleted after 10 s, and a start takes less. */
const triesMax = 20
const tryMillis = 1_000

/**
 * Creates and updates streams. Returns the share of the declared sizes that new ones got. A first
 * start that was killed may have left an empty stream in too large a share: it makes room.
 *
 * `replicas`: least copies of each stream. Existing ones keep theirs if they have more, and new
 * ones get as many as the others have.
 */
export const ensureStreams = async (
  jsm: JetStreamManager,
  wanted: Readonly<Record<string, Sized>>,
  replicas: number,
  named: BytesMax
): Promise<number> => {
  for (let tries = 1; ; tries++)
    try {
      return await ensureOnce(jsm, wanted, replicas, named)
    } catch (error) {
      if (!(error instanceof ProbeInUse) || tries === triesMax) throw error
      await setTimeout(tryMillis)
      await removeOldProbe(jsm)
    }
}

/** Step between two shares that are tried: at most a quarter of the room stays unused. */
const step = 3 / 4
/** 235 MiB for all streams and buckets. */
const shareMin = 1 / 64

/** Shares of the declared sizes in which new streams are tried, from all down to the least. */
export const shares: ReadonlyArray<number> = [
  ...Array.from({ length: 15 }, (_, n) => step ** n).filter((share) => share > shareMin),
  shareMin
]

/** Declared bytes of every stream and bucket, by the name of the stream. */
export const declaredBytes: Readonly<Record<string, number>> = Object.fromEntries([
  ...allStreams.map(({ maxBytes, name }) => [name, maxBytes] as const),
  ...bucketNames.map((bucket) => [bucketStream(bucket), buckets[bucket].maxBytes] as const)
])

/**
 * Limit of a new stream. `named`: the limit that the operator set, which no share changes.
 */
export const newBytesMax = (stream: string, share: number, named?: number): number =>
  named ?? Math.floor(declaredBytes[stream]! * share)

/** Bytes that the server needs at least, with the limits that the operator set. */
export const leastBytes = (named: Readonly<Record<string, number>>): number =>
  Object.keys(declaredBytes).reduce(
    (sum, stream) => sum + newBytesMax(stream, shareMin, named[stream]),
    0
  )

interface Existing {
  /** 0 or less: none. */
  readonly bytesMax: number
  readonly bytes: number
}

/**
 * Limit of a stream that exists: what the operator set, else the limit that it has. Never less than
 * the stream holds, as the server might delete messages to obey.
 */
export const existingBytesMax = ({ bytes, bytesMax }: Existing, named?: number): number =>
  named === undefined ? bytesMax : Math.max(named, bytes)

/**
 * Limit of a stream that was created a moment ago in a larger share, here or by another process
 * that starts. Processes only lower it, so that they end at the same size.
 */
export const loweredBytesMax = ({ bytes, bytesMax }: Existing, wanted: number): number =>
  bytesMax > 0 && bytesMax <= wanted ? bytesMax : Math.max(wanted, bytes)

/** Code of nats-server: above the limit of the account for one stream. */
const streamTooLarge = 10122
/** Codes of nats-server: the storage of the account or server, or its limit for one stream. */
const noStorageCodes = [10002, 10028, 10047, streamTooLarge]
/** No server of the cluster takes a replica. The description says why. */
const noPeers = 10005

/** Whether the server refused a stream because it has too little storage left for it. */
export const isNoStorage = ({ code, message }: { code: number; message: string }): boolean =>
  noStorageCodes.includes(code) ||
  (code === noPeers && /insufficient storage/i.test(message) && !/offline/i.test(message))

/**
 * The stream that reserves the sum of others. A cluster places each stream by figures of up to a
 * second ago: streams that are created one after the other reserve more than its servers have, and
 * then the servers refuse every update.
 */
const probe = "BELLCAST_PROBE"
/** A start that creates streams for longer was killed. */
const probeMillisMax = 10_000

/** Another process creates streams at this moment, or was killed then. */
class ProbeInUse extends Error {}

const remove = (jsm: JetStreamManager) =>
  jsm.streams.delete(probe).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })

/**
 * Reserves the bytes in one request, gives them back, and runs `run`, which creates the streams.
 * Fails with ProbeInUse while another process does the same: each would take the bytes of the other
 * for used.
 */
const withProbe = async <A>(
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
const removeOldProbe = async (jsm: JetStreamManager) => {
  // The request fails while the stream has no leader yet: then it is new.
  const info = await jsm.streams.info(probe).catch(() => undefined)
  if (info === undefined) return
  const millis = Date.parse(info.ts ?? info.created) - Date.parse(info.created)
  if (millis > probeMillisMax) await remove(jsm)
}
