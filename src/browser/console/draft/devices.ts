// The browsers of a user, as people call them.

export interface Device {
  readonly id: string
  /** As its page named it: "Firefox on Android". */
  readonly label: string | undefined
  /** Whose push service it has, for one without a name. */
  readonly service: string
  /** Milliseconds since the epoch. */
  readonly storedAt: number
}

/** The maker of a browser, by the end of the host of its push service. */
const services: ReadonlyArray<readonly [host: string, name: string]> = [
  ["googleapis.com", "Google"],
  ["push.services.mozilla.com", "Mozilla"],
  ["push.apple.com", "Apple"],
  ["notify.windows.com", "Microsoft"]
]

const serviceOf = (endpoint: string): string => {
  const { hostname = "" } = URL.parse(endpoint) ?? {}
  return services.find(([host]) => hostname.endsWith(host))?.[1] ?? hostname
}

/** Of a subscription as the API shows it, which has any members that a client stored. */
export const deviceOf = (subscription: object): Device => {
  const { endpoint, id, label, last_modified } = subscription as Readonly<Record<string, unknown>>
  return {
    id: String(id),
    label: typeof label === "string" && label.trim() !== "" ? label : undefined,
    service: serviceOf(String(endpoint)),
    storedAt: Number(last_modified)
  }
}
