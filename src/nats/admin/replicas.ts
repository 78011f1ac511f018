// How many copies a cluster keeps of each stream. A start raises the number; only an operator who
// asks for it lowers it, as the loss of one server then loses what was accepted.
import { JetStreamApiError } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { streamNames } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import { attempt, NoStorage, StartRefused } from "../connection/errors.ts"
import { infoOf } from "../stream/info.ts"
import { isNoStorage } from "./ensure-streams.ts"

/** Copies that nats-server keeps of a stream at most. */
export const replicasMax = 5

/** Fails with StartRefused if a stream has more copies than the operator set. */
export const refuseFewerCopies = Effect.fnUntraced(function* (set: Option.Option<number>) {
  if (Option.isNone(set)) return
  const nats = yield* Nats
  for (const name of streamNames) {
    const copies = (yield* infoOf(nats, name))?.config.num_replicas ?? 1
    if (copies > set.value)
      return yield* new StartRefused({
        message:
          `BELLCAST_REPLICAS=${set.value}, but ${name} has ${copies} copies. Leave it unset to ` +
          `keep them, or give copies up with \`bellcast streams --replicas ${set.value}\``
      })
  }
})

/** A server that has reserved too much refuses every update, also to fewer copies. */
const noStorage = (name: string, replicas: number, { message }: JetStreamApiError) =>
  new NoStorage({
    message:
      `NATS refuses to keep ${name} ${replicas} times (nats-server: ${message}). A server that ` +
      "has reserved more than it has storage refuses every change, also to fewer copies. Raise " +
      "max_file_store of each server or the limit of the account, or delete streams of others, " +
      "then repeat the command"
  })

/**
 * Gives every stream and bucket so many copies, more or fewer. Fails if one is missing, and with
 * NoStorage if a server has too little storage.
 */
export const setReplicas = Effect.fnUntraced(function* (replicas: number) {
  const { jsm } = yield* Nats
  for (const name of streamNames)
    yield* attempt("set copies", () => jsm.streams.update(name, { num_replicas: replicas })).pipe(
      Effect.mapError((error) =>
        error.cause instanceof JetStreamApiError && isNoStorage(error.cause)
          ? noStorage(name, replicas, error.cause)
          : error
      )
    )
})
