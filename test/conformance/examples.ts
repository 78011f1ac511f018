// The examples of the API description, made usable: as they stand, their endpoint is refused.
import { createHash } from "node:crypto"
import type { Target } from "./api.ts"

/** As it stands in the description: below .example, where no push service can be. */
export const refusedEndpoint = "https://push-service.example/made-by-the-browser"

const idOf = (endpoint: string) =>
  createHash("sha256").update(JSON.stringify(endpoint)).digest("hex")

/** The description with an endpoint, and the id of it, that the target takes. */
export const withAllowedEndpoint = <D>(document: D, { pushOrigin }: Target): D => {
  const allowed = `${pushOrigin}/made-by-the-browser`
  return JSON.parse(
    JSON.stringify(document)
      .replaceAll(refusedEndpoint, allowed)
      .replaceAll(idOf(refusedEndpoint), idOf(allowed))
  ) as D
}
