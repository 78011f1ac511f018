// Fetches nats-server before the first test, where it is missing: a test that starts a service with
// an embedded server would spend its own timeout on that.
import { Effect } from "effect"
import { locateNatsServer } from "#embedded/program/locate.ts"

/** Without one the tests say what is missing, or run nats-server in a container. */
export default async () => {
  if (process.env["TARGET_URL"]) return
  await Effect.runPromise(Effect.ignore(locateNatsServer))
}
