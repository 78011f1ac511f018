// The address of the metrics port as a setting: `host:port`, or `off`. Pure.

export interface ListenAddress {
  /** Undefined: every address of this machine. */
  readonly host: string | undefined
  /** 0: any free port. */
  readonly port: number
}

const listenAddressForm = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]*)):(\d{1,5})$/
const portMax = 65_535

/** The words that mean no port at all; some programs use 0 for that. */
export const isOff = (text: string): boolean => text === "off" || text === "0"

/** Undefined: the text is `off`, or no address. */
export const listenAddressOf = (text: string): ListenAddress | undefined => {
  const [, ipv6, name, port] = listenAddressForm.exec(text) ?? []
  if (port === undefined || Number(port) > portMax) return undefined
  return { host: ipv6 || name || undefined, port: Number(port) }
}

/** Why a text cannot be used; undefined when it can. */
export const listenAddressFault = (text: string): string | undefined =>
  isOff(text) || listenAddressOf(text) !== undefined
    ? undefined
    : 'Expected host:port (as in 127.0.0.1:9998, [::1]:9998, :9998 for every address), or "off"'

/** How an address is written in a URL. */
export const addressText = (host: string, port: number): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`
