// Absolute addresses that answers carry: of the API itself and of its documentation. Pure.
import { Option } from "effect"
import { plainHost, type SettingsShape } from "#config"
import type { GatewaySettings } from "../settings.ts"

/** Where we listen, as it stands in a URL (RFC 3986 section 3.2.2). */
export const addressOf = ({ host, port }: Pick<SettingsShape, "host" | "port">): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`

/** `x:80` and `x` are the same origin for http; browsers write the short form. */
const withoutDefaultPort = (scheme: "http" | "https", host: string): string =>
  host.replace(scheme === "https" ? /:0*443$/ : /:0*80$/, "")

/** Scheme and host as clients see them: as configured, else as this request names them. */
export const originOf = (
  settings: Pick<SettingsShape, "httpScheme" | "httpHost" | "host" | "port">,
  host: string | undefined
): string => {
  const scheme = Option.getOrElse(settings.httpScheme, () => "http" as const)
  // What could not stand in a URL would let a client write into our answers.
  const named = host !== undefined && plainHost.test(host) ? host : addressOf(settings)
  const seen = Option.getOrElse(settings.httpHost, () => named)
  return `${scheme}://${withoutDefaultPort(scheme, seen)}`
}

export const versionOf = ({
  httpApiVersion
}: Pick<GatewaySettings["Service"], "httpApiVersion">): string => `v${httpApiVersion.split(".")[0]}`

/** The API describes itself when the operator names no other documentation. */
export const docsUrl = (
  { projectDocs }: Pick<GatewaySettings["Service"], "projectDocs">,
  rootUrl: string
): string => (projectDocs === "" ? `${rootUrl}/__api__` : projectDocs)
