// `bellcast keys show`: the secrets kept beside the embedded server, for a second process.
import { join } from "node:path"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { addressIn, folderAt } from "#embedded/folder.ts"
import { loadSecrets } from "#secrets/file.ts"
import { developmentSubject, keysAreSet } from "#secrets/secrets.ts"
import { ownSettings } from "../terminal/input.ts"
import { failed, failedBy, noted } from "../terminal/output.ts"
import { allLines } from "./lines.ts"
import { keySettings } from "./own-keys.ts"

/** Ignores BELLCAST_NATS_URL, which an operator may have set already for the second process. */
const show = Effect.gen(function* () {
  const own = yield* ownSettings("dataDir", "useridHmacSecret", ...keySettings, "vapidSubject")
  if (keysAreSet({ ...own, natsUrl: Option.none() })) {
    return yield* failed(
      "VAPID keys are set here (BELLCAST_VAPID_...), so those of the data folder are not used"
    )
  }
  const file = yield* Effect.mapError(loadSecrets(own.dataDir), failedBy)
  const subject = Option.getOrElse(own.vapidSubject, () => developmentSubject)
  const secret = Option.match(own.useridHmacSecret, {
    onNone: () => file.useridHmacSecret,
    onSome: Redacted.value
  })
  const server = yield* Effect.promise(() => addressIn(folderAt(join(own.dataDir, "nats"))))
  const natsLine =
    server === undefined
      ? "# BELLCAST_NATS_URL stands here while the embedded server runs."
      : `BELLCAST_NATS_URL=${server.url}`
  const head = `# Secrets: those of ${own.dataDir}/secrets.json.`
  yield* Console.log([head, natsLine, allLines(file.vapidKeys, subject, secret)].join("\n"))
}).pipe(noted)

/** The verb. */
export const showCommand = Command.make("show", {}, () => show).pipe(
  Command.withDescription(
    "Print the secrets beside the embedded server, with private keys, as lines for another process"
  )
)
