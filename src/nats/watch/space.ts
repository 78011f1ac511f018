// The space that streams and buckets have left. Before a stream is full and refuses all messages,
// the service refuses requests that make it grow, and so keeps space for deletions and recorded
// facts. Log lines say that a stream fills up, is full, and has room again.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { monotonicMillis } from "#clock/clocks.ts"
import { bucketNames, bucketStream, buckets } from "#streams/buckets.ts"
import { allStreams, streamNames, streams } from "#streams/index.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { NatsUnavailable } from "../connection/errors.ts"
import { type Look, StreamWatch } from "./streams.ts"

/** The size of LOG, WORK or the stream of a bucket. */
interface Room {
  readonly stream: string
  readonly bytes: number
  /** Limit of `bytes`; 0 or less: none. */
  readonly bytesMax: number
}

/**
 * At this share of its bytes a stream counts as full. The rest is for deletions, for entries that
 * are written again, and for the facts that workers record: 200 MiB of 4 GiB.
 */
export const fullShare = 0.95

/**
 * At this share of a bucket, requests that write an entry again in its size are refused, too: a
 * full nats-server stores only what is smaller than before.
 */
export const lastShare = 0.99

/**
 * At this share of LOG users store nothing new, and at this share of WORK no looks of operators are
 * recorded; what is left up to `fullShare` is for broadcasts: 200 MiB of 4 GiB.
 */
export const usersShare = 0.9

export const isFull = (
  { bytes, bytesMax }: Omit<Room, "stream">,
  share: number = fullShare
): boolean => bytesMax > 0 && bytes >= share * bytesMax

/** The streams that refuse messages when they are full. The bucket `cache` deletes instead. */
const refusing: ReadonlyArray<string> = [
  ...allStreams.map(({ name }) => name),
  ...bucketNames.filter((bucket) => !buckets[bucket].forgets).map(bucketStream)
]

/**
 * What requests get 507 for, and from which share of a stream on: what `users` store, but for
 * broadcasts of publishers; `looks` of operators at people; and all `growth`.
 */
export const refusals: ReadonlyArray<{
  readonly stream: string
  readonly refused: "users" | "looks" | "growth"
  readonly share: number
}> = [
  { stream: streams.log.name, refused: "users", share: usersShare },
  { stream: streams.work.name, refused: "looks", share: usersShare },
  ...refusing.map((stream) => ({ stream, refused: "growth" as const, share: fullShare }))
]

/** The sizes of all streams. */
const roomsOf = (look: Look): ReadonlyArray<Room> =>
  streamNames.flatMap((stream) => {
    const info = look.streams.get(stream)
    return info === undefined
      ? []
      : [{ stream, bytes: info.state.bytes, bytesMax: info.config.max_bytes }]
  })

export class Space extends Context.Service<
  Space,
  {
    /** The latest known sizes. */
    readonly rooms: () => ReadonlyArray<Room>
    /** Whether one of these streams has reached a share, by its latest size or a refusal since. */
    readonly isFull: (streams: ReadonlyArray<string>, share?: number) => boolean
    /** Whether requests of some kind get 507 now. */
    readonly isRefusing: () => boolean
    /** Reports that the server refused a write for lack of room. Valid until the next `look`. */
    readonly refused: (stream: string) => Effect.Effect<void>
    /** Reads the sizes of all streams now. */
    readonly look: Effect.Effect<ReadonlyArray<Room>, NatsUnavailable>
  }
>()("bellcast/nats/Space") {
  static readonly layer = Layer.effect(
    Space,
    Effect.gen(function* () {
      const watch = yield* StreamWatch
      let rooms: ReadonlyArray<Room> = []
      /** Streams that refused a write, and when, by the monotonic clock. */
      const refusedAt = new Map<string, number>()
      const warn = makeRateLimitedLog("a stream has no room for what it was given", Effect.logError)
      const see = (look: Look) => {
        rooms = roomsOf(look)
        for (const [stream, at] of refusedAt) if (at < look.began) refusedAt.delete(stream)
        return rooms
      }
      yield* watch.tell((look) => Effect.sync(() => void (look !== undefined && see(look))))
      const isAnyFull: Space["Service"]["isFull"] = (names, share) =>
        names.some((name) => refusedAt.has(name)) ||
        rooms.some((room) => names.includes(room.stream) && isFull(room, share))
      return Space.of({
        rooms: () => rooms,
        isFull: isAnyFull,
        isRefusing: () => refusals.some(({ share, stream }) => isAnyFull([stream], share)),
        refused: Effect.fnUntraced(function* (stream: string) {
          refusedAt.set(stream, yield* monotonicMillis)
          yield* warn({ stream })
        }),
        look: Effect.map(watch.look, see)
      })
    })
  )
}

/** A log line is due when a stream reaches one of these shares of its bytes. */
const shares = [0.7, usersShare, fullShare]
/** A stream leaves a level this far below its share, so that small changes write no lines. */
const marginShare = 0.01

/** How many of the shares a stream has reached. */
export const levelOf = ({ bytes, bytesMax }: Omit<Room, "stream">, before: number): number => {
  const reached = (margin: number) =>
    bytesMax <= 0 ? 0 : shares.filter((share) => bytes >= (share - margin) * bytesMax).length
  return Math.max(reached(0), Math.min(before, reached(marginShare)))
}

/** How an operator makes a stream larger. */
const largerOf = (stream: string) => {
  const found = Object.entries(streams).find(([, { name }]) => name === stream)
  return found === undefined
    ? { command: `nats stream edit ${stream} --max-bytes` }
    : { setting: `BELLCAST_${found[0].toUpperCase()}_BYTES_MAX` }
}

/** The same in words. */
export const remedyOf = (stream: string): string => {
  const larger = largerOf(stream)
  return "command" in larger
    ? `make it larger with \`${larger.command} BYTES\``
    : `raise ${larger.setting} and restart the service`
}

const write = (level: number, before: number, { bytes, bytesMax, stream }: Room) => {
  const fields = { stream, bytes, bytesMax, ...largerOf(stream) }
  if (level < before)
    return before === shares.length
      ? Effect.logInfo("a stream has room again", fields)
      : Effect.void
  if (level === 1) return Effect.logWarning("a stream is more than 70 % full", fields)
  if (level === 2) {
    const text =
      stream === streams.log.name
        ? "subscriptions and registrations are refused"
        : "requests that make it grow are refused when it is full"
    return Effect.logError(`a stream is more than ${usersShare * 100} % full: ${text}`, fields)
  }
  return Effect.logError(
    `a stream is more than ${fullShare * 100} % full: requests that make it grow are refused`,
    fields
  )
}

/** False: the bucket `cache`, in which a new entry takes the place of the oldest. */
const isRefusing = (room: Room) => refusals.some(({ stream }) => stream === room.stream)

/** Logs one line when a stream, also that of a bucket, reaches a share of its bytes. */
export const fullnessLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const watch = yield* StreamWatch
    const levels = new Map<string, number>()
    const writeChange = (room: Room) => {
      const before = levels.get(room.stream) ?? 0
      const level = levelOf(room, before)
      levels.set(room.stream, level)
      return level === before ? Effect.void : write(level, before, room)
    }
    const writeChanges = (look: Look) =>
      Effect.forEach(roomsOf(look).filter(isRefusing), writeChange, { discard: true })
    yield* watch.tell((look) => (look === undefined ? Effect.void : writeChanges(look)))
  })
)
