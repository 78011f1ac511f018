// The VAPID keys of the service, where a verb runs: from the settings, or from the data folder.
import * as Effect from "effect/Effect"
import { loadSecrets } from "#secrets/file.ts"
import { keysAreSet, keysOfSettings, missingFaults } from "#secrets/secrets.ts"
import { ownSettings } from "../terminal/input.ts"
import { failed, failedBy } from "../terminal/output.ts"

/** The settings that have the keys. */
export const keySettings = ["vapidFormerKeys", "vapidPrivateKey", "vapidPublicKey"] as const

/** The keys, with their private halves. `folder`: of the file that has them, if it is a file. */
export const ownKeys = Effect.gen(function* () {
  const own = yield* ownSettings("dataDir", "natsUrl", ...keySettings)
  if (!keysAreSet(own)) {
    const { vapidKeys } = yield* Effect.mapError(loadSecrets(own.dataDir), failedBy)
    return { set: vapidKeys, folder: own.dataDir }
  }
  const { faults: wrong, keys, missing } = keysOfSettings(own, true)
  const faults = [...wrong, ...missingFaults(missing)]
  if (faults.length > 0)
    return yield* failed(`the settings of the service must be here, too:\n${faults.join("\n")}`)
  return { set: keys, folder: undefined }
})
