// Starts the service as `make run` does, and asks what it leaves open.
import { join } from "node:path"
import { expect } from "vitest"
import { makeFolder } from "./folder.ts"
import { startPushService } from "./push-service.ts"
import { type Service, startService } from "./service.ts"

/** Other tests set these; here they must come from the flag. */
const unset = {
  BELLCAST_AUTH_POLICIES: "",
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: "",
  BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "",
  BELLCAST_PUBLIC_METRICS: "",
  BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX: "",
  BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX: "",
  BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX: "",
  BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX: "",
  BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "",
  BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: "",
  BELLCAST_BROADCAST_BYTES_PER_PUBLISHER_PER_HOUR_MAX: ""
}

/** Starts with `--development`, beside an embedded server in a new folder. */
export const startDevelopment = async (
  env: Readonly<Record<string, string>> = {}
): Promise<Service> => {
  const folder = await makeFolder()
  const service = await startService({
    cwd: folder.path,
    env: { ...unset, BELLCAST_DATA_DIR: join(folder.path, "data"), ...env },
    args: ["--development"],
    readyTimeoutMillis: 60_000
  }).catch(async (error) => {
    await folder[Symbol.asyncDispose]()
    throw error
  })
  return {
    ...service,
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    }
  }
}

/** The statuses of what only a development service lets everybody do. */
export const statusesOf = async ({ url }: Service, authorization: string) => {
  const headers = { authorization, "content-type": "application/json" }
  await using push = await startPushService()
  const post = async (path: string, data: unknown) => {
    const body = JSON.stringify({ data })
    return (await fetch(url + path, { method: "POST", headers, body })).status
  }
  return {
    publish: await post("/channels/news", { title: "Hello" }),
    loopback: await post("/subscriptions", push.subscribe().subscription),
    metrics: (await fetch(`${url}/__metrics__`)).status
  }
}

/**
 * Fails where the service has any address of the demo or the console, or prints one of the demo.
 */
export const expectNoDemo = async ({ output, url }: Service): Promise<void> => {
  for (const path of ["demo", "demo/", "demo/index.html"])
    expect((await fetch(`${url}/${path}`)).status).toBe(404)
  for (const path of ["console", "console/", "console/worker.js", "console/session"])
    expect((await fetch(`${url}/${path}`)).status).toBe(404)
  expect((await fetch(`${url}/demo/push/410/a`, { method: "POST" })).status).toBe(404)
  expect(output()).not.toMatch(/http\S+(demo|console)/)
}
