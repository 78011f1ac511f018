// All that a login by mail needs but the browser: a real Portier broker, its mail server, and the
// service behind three origins, with a site for each.
import { startNats, type TestNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { type PushService, startPushService } from "#test/push-service.ts"
import { type Service, startService } from "#test/service.ts"
import { type MailSink, startMailSink } from "./mail-sink.ts"
import { type Broker, startBroker } from "./portier-broker.ts"
import { startSite, startTlsProxy } from "./portier-site.ts"

/** Origins of the service, as browsers reach it. */
export const origins = ["http://127.0.0.1", "http://localhost", "https://localhost"] as const

/** One of the origins: what browsers find there. */
export interface Front {
  /** The page of the site. */
  readonly page: string
  /** The API, as browsers reach it. */
  readonly api: string
  /** The gateway behind it. */
  readonly service: Service
}

export interface Stage extends AsyncDisposable {
  readonly nats: TestNats
  readonly pushService: PushService
  readonly mails: MailSink
  readonly fronts: ReadonlyMap<string, Front>
  readonly broker: Broker
  /** Ends the broker and starts another at the same URL, which has other keys. */
  readonly restartBroker: (
    algorithm: "RS256" | "EdDSA",
    whileAway: () => Promise<void>
  ) => Promise<void>
}

/** Principals who may publish. */
const publishers = "portier:Editor@Example.org"

const environment = (broker: Broker, origin: string, pages: ReadonlyArray<string>) => {
  const { host, protocol } = new URL(origin)
  return {
    BELLCAST_AUTH_POLICIES: "portier",
    BELLCAST_AUTH_PORTIER_BROKER_URL: broker.url,
    BELLCAST_AUTH_PORTIER_REDIRECT_HOSTS: pages.map((page) => new URL(page).host).join(" "),
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: publishers,
    BELLCAST_CORS_ORIGINS: pages.map((page) => new URL(page).origin).join(" "),
    BELLCAST_HTTP_HOST: host,
    BELLCAST_HTTP_SCHEME: protocol.slice(0, -1)
  }
}

export const startStage = async (): Promise<Stage> => {
  const opened = new AsyncDisposableStack()
  try {
    const nats = opened.use(await startNats())
    const pushService = opened.use(await startPushService())
    const mails = opened.use(await startMailSink())
    let broker = await startBroker(mails.address)
    opened.defer(() => broker[Symbol.asyncDispose]())
    const places = await Promise.all(
      origins.map(async (name) => {
        const port = await claimPort()
        const isTls = name.startsWith("https:")
        const outer = isTls ? opened.use(await startTlsProxy(port)).port : port
        const origin = `${name}:${outer}`
        const site = opened.use(await startSite(origin))
        return { name, port, origin, page: `http://localhost:${site.port}/` }
      })
    )
    const pages = places.map(({ page }) => page)
    const fronts = new Map<string, Front>()
    for (const [i, { name, origin, page, port }] of places.entries()) {
      const service = await startService({
        natsUrl: nats.url,
        port,
        env: environment(broker, origin, pages),
        ...(i === 0 ? {} : { roles: "gateway" })
      })
      opened.defer(async () => void (await service.stop()))
      fronts.set(name, { page, api: `${origin}/v1`, service })
    }
    return {
      nats,
      pushService,
      mails,
      fronts,
      broker,
      restartBroker: async (algorithm, whileAway) => {
        await broker[Symbol.asyncDispose]()
        await whileAway()
        broker = await startBroker(mails.address, broker.port, [algorithm])
      },
      [Symbol.asyncDispose]: () => opened.disposeAsync()
    }
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}
