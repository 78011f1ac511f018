// Absolute URLs in responses: of the API and of its documentation. Pure.
import * as Option from "effect/Option"
import { plainHost, type SettingsShape } from "#config"
import { addressText } from "#settings/addresses.ts"
import type { GatewaySettings } from "../settings.ts"
import type { ApiRequest } from "./request.ts"

/** `x:80` and `x` are the same origin for http. Browsers send the short form. */
const withoutDefaultPort = (scheme: "http" | "https", host: string): string =>
  host.replace(scheme === "https" ? /:0*443$/ : /:0*80$/, "")

type Arrived = Pick<ApiRequest, "headers" | "received" | "fromTrustedProxy" | "port">

/** A proxy that ends TLS says so. Any other text is ignored, as is that of somebody else. */
const schemeOf = ({ fromTrustedProxy, received }: Arrived): "http" | "https" =>
  fromTrustedProxy && received["x-forwarded-proto"]?.toLowerCase() === "https" ? "https" : "http"

/**
 * Scheme and host as clients see them: from the settings, else from X-Forwarded-Proto of a trusted
 * proxy and the Host header.
 */
export const originOf = (
  settings: Pick<SettingsShape, "httpScheme" | "httpHost" | "host">,
  request: Arrived
): string => {
  const { host } = request.headers
  const scheme = Option.getOrElse(settings.httpScheme, () => schemeOf(request))
  // Ignore a Host that is no valid host: a client must not write other text into responses.
  const named =
    host !== undefined && plainHost.test(host) ? host : addressText(settings.host, request.port)
  const seen = Option.getOrElse(settings.httpHost, () => named)
  return `${scheme}://${withoutDefaultPort(scheme, seen)}`
}

/** The URL of the documentation: from the settings, else the API description. */
export const docsUrl = (
  { projectDocs }: Pick<GatewaySettings["Service"], "projectDocs">,
  rootUrl: string
): string => (projectDocs === "" ? `${rootUrl}/__api__` : projectDocs)
