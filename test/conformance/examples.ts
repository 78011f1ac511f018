// Replaces the endpoint in the examples of the API description, which every server rejects.
import { createHash } from "node:crypto"
import type { Target } from "./api.ts"

/** The endpoint of the examples: below .example, where no push service can be. */
export const refusedEndpoint = "https://push-service.example/made-by-the-browser"

const idOf = (endpoint: string) =>
  createHash("sha256").update(JSON.stringify(endpoint)).digest("hex")

/** The description with an endpoint that the target accepts, and with the id of this endpoint. */
export const withAllowedEndpoint = <D>(document: D, { pushOrigin }: Target): D => {
  const allowed = `${pushOrigin}/made-by-the-browser`
  return JSON.parse(
    JSON.stringify(document)
      .replaceAll(refusedEndpoint, allowed)
      .replaceAll(idOf(refusedEndpoint), idOf(allowed))
  ) as D
}
