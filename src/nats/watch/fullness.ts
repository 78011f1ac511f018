// Logs that a stream fills up, is full, and has room again.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { streams } from "#streams/index.ts"
import { fullShare, type Room, refusals, roomsOf, usersShare } from "./space.ts"
import { type Look, StreamWatch } from "./streams.ts"

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
