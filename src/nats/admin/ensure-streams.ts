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

type Config = Partial<StreamConfig> & { readonly name: string; readonly max_bytes: number }

/** The config of a declared stream or bucket, with this limit of its bytes. */
export type Sized = (bytesMax: number) => Config

export const infoOf = (jsm: JetStreamManager, stream: string): Promise<StreamInfo | undefined> =>
  jsm.streams.info(stream).catch(unlessCode(streamNotFound))

const existingOf = ({ config, state }: StreamInfo): Existing => ({
  bytesMax: config.max_bytes,
  bytes: state.bytes
})

/** Updates a stream that differs. A server with too little storage refuses any update. */
const update = async (jsm: JetStreamManager, { config: is }: StreamInfo, wanted: Config) => {
  const differs = Object.entries(wanted).some(
    ([key, value]) => !isDeepStrictEqual(is[key as keyof StreamConfig], value)
  )
  if (differs) await jsm.streams.update(wanted.name, wanted)
}

/** Creates a stream. If it was created meanwhile or in a larger share, lowers its limit. */
const create = async (jsm: JetStreamManager, config: Config) => {
  try {
    await jsm.streams.add(config)
  } catch (error) {
    unlessCode(nameInUse)(error)
    const found = await jsm.streams.info(config.name)
    const bytesMax = loweredBytesMax(existingOf(found), config.max_bytes)
    await update(jsm, found, { ...config, max_bytes: bytesMax })
  }
}

/**
 * Creates streams in the largest share of their declared sizes that the server has storage for.
 * `named`: limits that the operator set. Returns the share.
 */
export const createWithin = async (
  jsm: JetStreamManager,
  missing: Readonly<Record<string, Sized>>,
  named: BytesMax
): Promise<number> => {
  let refusal: JetStreamApiError | undefined
  for (const share of shares) {
    try {
      for (const [stream, sized] of Object.entries(missing))
        await create(jsm, sized(newBytesMax(stream, share, named[stream])))
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
 */
export const ensureStreams = async (
  jsm: JetStreamManager,
  wanted: Readonly<Record<string, Sized>>,
  named: BytesMax
): Promise<number> => {
  const missing: Record<string, Sized> = {}
  const untouched: Record<string, Sized> = {}
  for (const [stream, sized] of Object.entries(wanted)) {
    const found = await infoOf(jsm, stream)
    if (found === undefined) missing[stream] = sized
    else {
      if (found.state.last_seq === 0) untouched[stream] = sized
      const bytesMax = existingBytesMax(existingOf(found), named[stream])
      await update(jsm, found, sized(bytesMax)).catch((error: unknown) => {
        throw error instanceof JetStreamApiError && isNoStorage(error)
          ? noStorage(named, error)
          : error
      })
    }
  }
  return createWithin(jsm, missing, named).catch((error: unknown) => {
    if (!(error instanceof NoStorage) || Object.keys(untouched).length === 0) throw error
    return createWithin(jsm, { ...untouched, ...missing }, named)
  })
}
