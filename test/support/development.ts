// Starts the service as `make run` does.
import { join } from "node:path"
import { makeFolder } from "./folder.ts"
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
  BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: ""
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
