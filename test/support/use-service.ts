// Servers and services that all cases of a file share: they start before the first case and end
// after the last. The fields of a result are there meanwhile.
import { afterAll, beforeAll, beforeEach } from "vitest"
import { type NatsOptions, startNats } from "./nats.ts"
import { connectAdmin } from "./nats-admin.ts"
import { type ServiceOptions, startService } from "./service.ts"

/** `start` gives what it opens to the stack, so that a failed start ends it, too. */
export const useShared = <A extends object>(
  start: (opened: AsyncDisposableStack) => Promise<A>
): A => {
  const opened = new AsyncDisposableStack()
  const started = {} as A
  beforeAll(async () => {
    Object.assign(started, await start(opened))
  })
  afterAll(() => opened.disposeAsync())
  return started
}

/** A nats-server that has no stream when a case begins. */
export const useEmptyNats = (options: NatsOptions = {}) => {
  const shared = useShared(async (opened) => ({ nats: opened.use(await startNats(options)) }))
  beforeEach(async () => {
    await using admin = await connectAdmin(shared.nats.url)
    for await (const name of admin.jsm.streams.names()) await admin.jsm.streams.delete(name)
  })
  return shared
}

/** A service with a nats-server of its own. */
export const useService = (
  options: Omit<ServiceOptions, "natsUrl"> = {},
  natsOptions: NatsOptions = {}
) =>
  useShared(async (opened) => {
    const nats = opened.use(await startNats(natsOptions))
    const service = opened.use(await startService({ ...options, natsUrl: nats.url }))
    return { nats, service }
  })
