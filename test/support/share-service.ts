// A nats-server and a service that the cases of a suite share: a process start costs more CPU time
// than most cases.
import { afterAll, beforeAll } from "vitest"
import { type NatsOptions, startNats, type TestNats } from "./nats.ts"
import { type Service, type ServiceOptions, startService } from "./service.ts"

interface Shared {
  readonly nats: TestNats
  readonly service: Service
}

/**
 * Starts both before the first case of the suite that calls this, and ends them after the last one.
 * Returns a function by which cases get them.
 */
export const shareService = (
  options: Omit<ServiceOptions, "natsUrl"> = {},
  natsOptions: NatsOptions = {}
) => {
  const stack = new AsyncDisposableStack()
  let shared: Shared
  beforeAll(async () => {
    const nats = stack.use(await startNats(natsOptions))
    shared = { nats, service: stack.use(await startService({ ...options, natsUrl: nats.url })) }
  })
  afterAll(() => stack.disposeAsync())
  return () => shared
}
