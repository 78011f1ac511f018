// Broadcasts that cases begin with, by where they are shown. No process of the suite delivers.
import { until } from "../../support/client.ts"
import type { Api } from "../api.ts"
import { locationOf } from "./broadcasts.ts"

export const idIn = (location: string): string => location.split("/").at(-1)!

/** A broadcast to the browser of the case. */
export const running = async (api: Api) => {
  await api.registered()
  await api.stored()
  return locationOf(api)
}

/** A broadcast to nobody. */
export const finished = async (api: Api, body?: unknown) => {
  const location = await locationOf(api, body)
  await until(
    () => api.send({ method: "GET", target: location, as: api.target.publisher }),
    ({ json }) => json.data.finished
  )
  return location
}
