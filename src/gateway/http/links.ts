// Absolute URLs in responses: of the API and of its documentation. Pure.
import { Option } from "effect"
import { plainHost, type SettingsShape } from "#config"
import type { GatewaySettings } from "../settings.ts"

/** The address of the listener as part of a URL (RFC 3986 section 3.2.2). */
export const addressOf = ({ host, port }: Pick<SettingsShape, "host" | "port">): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`

/** `x:80` and `x` are the same origin for http. Browsers send the short form. */
const withoutDefaultPort = (scheme: "http" | "https", host: string): string =>
  host.replace(scheme === "https" ? /:0*443$/ : /:0*80$/, "")

/** Scheme and host as clients see them: from the settings, else from the Host header. */
export const originOf = (
  settings: Pick<SettingsShape, "httpScheme" | "httpHost" | "host" | "port">,
  host: string | undefined
): string => {
  const scheme = Option.getOrElse(settings.httpScheme, () => "http" as const)
  // Ignore a Host that is no valid host: a client must not write other text into responses.
  const named = host !== undefined && plainHost.test(host) ? host : addressOf(settings)
  const seen = Option.getOrElse(settings.httpHost, () => named)
  return `${scheme}://${withoutDefaultPort(scheme, seen)}`
}

export const versionOf = ({
  httpApiVersion
}: Pick<GatewaySettings["Service"], "httpApiVersion">): string => `v${httpApiVersion.split(".")[0]}`

/** The URL of the documentation: from the settings, else the API description. */
export const docsUrl = (
  { projectDocs }: Pick<GatewaySettings["Service"], "projectDocs">,
  rootUrl: string
): string => (projectDocs === "" ? `${rootUrl}/__api__` : projectDocs)
