// Creates streams as large as the server has storage for, and updates those that differ.
import { isDeepStrictEqual } from "node:util"
import {
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo
} from "@nats-io/jetstream"
import { NoStorage } from "../connection/errors.ts"
import { streamNotFound } from "../connection/responses.ts"
import {
  type Existing,
  existingBytesMax,
  isNoStorage,
  leastBytes,
  loweredBytesMax,
  newBytesMax,
  shares
} from "./stream-sizes.ts"

const nameInUse = 10058

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

export const infoOf = (jsm: JetStreamManager, stream: string): Promise<StreamInfo | undefined> =>
  jsm.streams.info(stream).catch(unlessCode(streamNotFound))

const existingOf = ({ config, state }: StreamInfo): Existing => ({
  bytesMax: config.max_bytes,
  bytes: state.bytes
})

const existingStreams = async (jsm: JetStreamManager, names: ReadonlyArray<string>) => {
  const found = new Map<string, StreamInfo>()
  for (const name of names) {
    const info = await infoOf(jsm, name)
    if (info !== undefined) found.set(name, info)
  }
  return found
}

/** Updates a stream that differs. A server with too little storage refuses any update. */
const update = async (jsm: JetStreamManager, { config: is }: StreamInfo, declared: Config) => {
  // The server adds metadata of its own, which an update must repeat.
  const wanted = { ...declared, metadata: { ...is.metadata, ...declared.metadata } }
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
    unlessCode(nameInUse)(error)
    const found = await jsm.streams.info(config.name)
    const bytesMax = loweredBytesMax(existingOf(found), config.max_bytes)
    const replicas = Math.max(found.config.num_replicas, config.num_replicas)
    await update(jsm, found, { ...config, max_bytes: bytesMax, num_replicas: replicas })
  }
}

/**
 * Creates streams in the largest share of their declared sizes that the server has storage for.
 * `named`: limits that the operator set. Returns the share.
 */
export const createWithin = async (
  jsm: JetStreamManager,
  missing: Readonly<Record<string, Sized>>,
  replicas: number,
  named: BytesMax
): Promise<number> => {
  let refusal: JetStreamApiError | undefined
  for (const share of shares) {
    try {
      for (const [stream, sized] of Object.entries(missing))
        await create(jsm, sized(newBytesMax(stream, share, named[stream]), replicas))
      return share
    } catch (error) {
      if (!(error instanceof JetStreamApiError && isNoStorage(error))) throw error
      refusal = error
    }
  }
  throw noStorage(named, refusal!)
}

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
      await update(jsm, found, config).catch((error: unknown) => {
        throw error instanceof JetStreamApiError && isNoStorage(error)
          ? noStorage(named, error)
          : error
      })
    }
  }
  const copies = Math.max(
    replicas,
    ...[...existing.values()].map(({ config }) => config.num_replicas)
  )
  return createWithin(jsm, missing, copies, named).catch((error: unknown) => {
    if (!(error instanceof NoStorage) || Object.keys(untouched).length === 0) throw error
    return createWithin(jsm, { ...untouched, ...missing }, copies, named)
  })
}
