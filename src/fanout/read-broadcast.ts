// Reads a broadcast: what its jobs share, or the reason why it cannot be sent.

import type { WholeBroadcast } from "#broadcasts/whole-broadcast.ts"
import {
  broadcastIdIn,
  expiresAtOf,
  fitsOnePush,
  isOwnSource,
  pauseWhenError,
  pauseWhenHeader,
  pauseWhenOf,
  payloadBytesMax,
  payloadHeader,
  publisherOf,
  readHeaders,
  redrivesHeader
} from "#domain/broadcast.ts"
import { delayError, laterStart, startError, startHeader } from "#domain/broadcast-start.ts"
import type { ShardJob } from "#domain/job.ts"
import type { Plan } from "#domain/outcome.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { streams } from "#streams/index.ts"
import { parseBroadcast } from "#streams/subjects.ts"
import { channelBytesMax, directToken, isDirect } from "#streams/tokens.ts"

const noChannel =
  `the subject names no channel: an id is 1 to ${channelBytesMax} bytes without a slash, ` +
  "and all but A-Z a-z 0-9 _ - are =XX, in upper case"

/** Whether Bellcast itself published a broadcast. */
export const isOwn = ({ subject }: Stored): boolean =>
  isOwnSource(parseBroadcast(subject)?.source ?? "")
const notOwn = "only Bellcast itself publishes broadcasts to users or to several channels"

const testToChannel = "a test goes to users alone, never to a channel"

const noParts = `${streams.log.name} lacks a part of the broadcast before it`

const tooLarge = `the payload is larger than ${payloadBytesMax} bytes`

/** The part that all jobs of a broadcast share. */
export type ShardRef = Omit<ShardJob, "shard" | "stride" | "floor">

/** The start of a broadcast that was accepted before, or its end instead. */
export interface Start {
  /** Cancelled before its start: nobody gets it. */
  readonly isEnd: boolean
  readonly seq: number
  /** When the server stored it. */
  readonly at: number
  readonly payload?: number
  /** Instead of that of the broadcast. */
  readonly rate?: number
}

/** The part of a plan that the message says. */
export type PlanOfMessage = Pick<Plan, "acceptedAt" | "pauseShare">

/** A broadcast whose message is well-formed. */
export interface Wanted {
  readonly ref: ShardRef
  readonly given: PlanOfMessage
  /** Undefined: the message does not say. */
  readonly publisher: string | undefined
  /** The start that it waits for; undefined: it starts now. */
  readonly later: { readonly at: string } | undefined
}

type Headers = ReturnType<typeof readHeaders>
type Place = NonNullable<ReturnType<typeof parseBroadcast>>

interface Rejected {
  readonly reason: string
}

const idIn = (text: string | undefined): number | undefined => broadcastIdIn(text ?? "")

const headerErrors = (
  { at, header }: Stored,
  { channel, source }: Place,
  { errors, headers }: Headers
): ReadonlyArray<string> => {
  const [start, redrives] = [header(startHeader), header(redrivesHeader)]
  const pauseWhen = header(pauseWhenHeader)
  // A gateway accepted its start some time before the message was stored: an hour ago may have
  // become longer ago, and a clock that differs may make 30 days longer ahead.
  const isChecked = start === undefined || isOwnSource(source)
  const error = isChecked ? undefined : startError(start, at)
  const delay = delayError(header)
  return [
    ...errors.map(({ description }) => description),
    ...(error === undefined ? [] : [`${startHeader}: ${error}`]),
    ...(delay === undefined ? [] : [delay]),
    ...(pauseWhen === undefined || pauseWhenOf(pauseWhen) !== undefined ? [] : [pauseWhenError]),
    // Lists leave tests out: nothing that goes to a channel must hide there.
    ...(headers.test === true && channel !== directToken ? [testToChannel] : []),
    ...(redrives === undefined || idIn(redrives) !== undefined
      ? []
      : [`${redrivesHeader} must be the id of a broadcast`])
  ]
}

/** The reason why a message at a place is no broadcast that can be sent; undefined: it is one. */
const reasonOf = (stored: Stored, place: Place, headers: Headers): string | undefined => {
  const { channel, source } = place
  const isOfBellcast = isDirect(channel)
  if (isOfBellcast && !isOwnSource(source)) return notOwn
  const { message } = stored
  if (message.type === "malformed") return message.reason
  if (message.type !== (isOfBellcast ? "direct" : "broadcast"))
    return `${message.type} is no broadcast on this subject`
  return headerErrors(stored, place, headers).join("; ") || undefined
}

/** `start`: undefined where the broadcast starts when it is accepted. */
export const readBroadcast = (stored: Stored, start?: Start): Wanted | Rejected => {
  const { header } = stored
  const place = parseBroadcast(stored.subject)
  if (place === undefined) return { reason: noChannel }
  const headers = readHeaders(header)
  const reason = reasonOf(stored, place, headers)
  if (reason !== undefined) return { reason }
  const { topic, ttlSeconds, urgency } = headers.headers
  const rate = start?.rate ?? headers.headers.rate
  const redrives = idIn(header(redrivesHeader))
  const former = place.source === "redrive" ? idIn(header(payloadHeader)) : undefined
  const payload = start?.payload ?? former
  const acceptedAt = start?.at ?? stored.at
  const pauseShare = pauseWhenOf(header(pauseWhenHeader) ?? "")?.failed_share
  return {
    publisher: publisherOf(place.source, header),
    given: { acceptedAt: stored.at, ...(pauseShare === undefined ? {} : { pauseShare }) },
    later: start === undefined ? laterStart(header, stored.at) : undefined,
    ref: {
      broadcast: stored.seq,
      channel: place.channel,
      acceptedAt,
      expiresAt: expiresAtOf(acceptedAt, ttlSeconds),
      urgency,
      ...(topic === undefined ? {} : { topic }),
      ...(rate === undefined ? {} : { rate }),
      ...(start === undefined ? {} : { since: start.seq }),
      ...(payload === undefined ? {} : { payload }),
      ...(redrives === undefined ? {} : { redrives })
    }
  }
}

/** The reason why a broadcast cannot be sent as a whole; undefined: it can. */
export const wholeError = (whole: WholeBroadcast | undefined): string | undefined => {
  if (whole === undefined) return noParts
  return fitsOnePush(whole.body) ? undefined : tooLarge
}
