// One gateway, with a nats-server of its own, for all tests of a file.
import { afterAll, beforeAll } from "vitest"
import { startNats } from "../nats.ts"
import { type Service, startService } from "../service.ts"

/** Starts it before the first test and ends it after the last. Its fields are there meanwhile. */
export const useGateway = (env: Readonly<Record<string, string>>): { service: Service } => {
  const opened = new AsyncDisposableStack()
  const started = {} as { service: Service }
  beforeAll(async () => {
    const nats = opened.use(await startNats())
    const options = { natsUrl: nats.url, roles: "gateway,projection", env }
    started.service = opened.use(await startService(options))
  })
  afterAll(() => opened.disposeAsync())
  return started
}
