// Checks that the user id secret is the one that this NATS was used with before. With another
// secret every user gets a new id and finds none of their subscriptions.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { textHmac } from "#basics/hmac.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { SecretsFault } from "./file.ts"

/** Identifies a secret without revealing more of it than a user id does. */
const fingerprintOf = (secret: Redacted.Redacted<string>): string =>
  textHmac(Redacted.value(secret))("bellcast userid secret", "base64url").slice(0, 22)

const otherSecret =
  "BELLCAST_USERID_HMAC_SECRET is not the one that this NATS was used with before: nobody would " +
  "find their subscriptions again. Set the former one (beside an embedded server it is in " +
  "secrets.json), or give up all users: `bellcast keys forget-users --force`."

const adopted = Effect.gen(function* () {
  const log = yield* EventLog
  const stored = yield* log.last("log", subjects.useridSecret)
  return {
    seq: stored?.seq ?? 0,
    fingerprint:
      stored?.message.type === "userid-secret.adopted/1" ? stored.message.fingerprint : ""
  }
})

const write = Effect.fnUntraced(function* (fingerprint: string, expect: number) {
  const log = yield* EventLog
  const body = { fingerprint, at: yield* Clock.currentTimeMillis }
  yield* log.append("log", {
    subject: subjects.useridSecret,
    type: "userid-secret.adopted/1",
    body,
    expect
  })
})

/** Records the secret in LOG at the first start. Fails with SecretsFault if another is recorded. */
export const adoptUseridSecret = Effect.fnUntraced(
  function* (secret: Redacted.Redacted<string>) {
    const fingerprint = fingerprintOf(secret)
    const known = yield* adopted
    if (known.fingerprint === fingerprint) return
    if (known.fingerprint !== "") return yield* new SecretsFault({ message: otherSecret })
    yield* write(fingerprint, known.seq)
  },
  Effect.retry({ times: 3, while: ({ _tag }) => _tag === "AppendConflict" })
)

/** Fails with SecretsFault if LOG has the fingerprint of another secret. */
export const checkUseridSecret = Effect.fnUntraced(function* (secret: Redacted.Redacted<string>) {
  const { fingerprint } = yield* adopted
  if (fingerprint !== "" && fingerprint !== fingerprintOf(secret))
    return yield* new SecretsFault({ message: otherSecret })
})

/** Lets the next start use another secret. All users of the former one are lost. */
export const forgetUseridSecret = Effect.flatMap(adopted, ({ seq }) => write("", seq))
