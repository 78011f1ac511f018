// Stops a reader at a message whose number only a later version of the service reads: one meets it
// after a rollback, or where a process of the former version was not heard. Such a message was
// accepted, so no reader takes it for malformed: each stops there, until a later version reads on.

import { streams } from "#streams/index.ts"
import { messageUnreadable } from "#telemetry/nats-metrics.ts"
import { NatsUnavailable } from "../connection/errors.ts"
import type { WorkTally } from "../connection/processes.ts"
import type { StreamKey } from "./append.ts"
import { laterTypeOf, nameIn, type Stored } from "./stored.ts"

/** The error of reading a message that only a later version reads. Counts it, for the alarm. */
export const refusalOf = (
  tally: WorkTally,
  stream: StreamKey,
  stored: Stored
): NatsUnavailable | undefined => {
  const type = laterTypeOf(stored)
  const name = nameIn(stored)
  if (type === undefined || name === undefined) return undefined
  const text =
    `message ${stored.seq} of ${streams[stream].name} is ${type}, which only a later version of ` +
    "Bellcast reads: start that version again"
  messageUnreadable(name)
  tally.meetUnreadable(text)
  return new NatsUnavailable({
    operation: `read ${type}`,
    reason: { _tag: "LaterVersion" },
    cause: new Error(text)
  })
}
