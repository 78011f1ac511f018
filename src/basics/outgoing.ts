// How undici reaches hosts that others name: over sockets of ours, straight or through the proxy of
// the environment. undici makes TLS of them.
import type { Socket } from "node:net"
import { anyLookup } from "./address-filter.ts"
import { codedError, type Opened, openSocket, type SocketTarget, timedOut } from "./open-socket.ts"
import { type HttpProxy, openTunnel, proxyCode } from "./proxy.ts"

/** The input of undici's connectors. An empty port is the default one. */
export interface ConnectTo {
  readonly hostname: string
  readonly protocol: string
  readonly port: string
}

export interface Outgoing extends Pick<SocketTarget, "lookup" | "millis"> {
  /** Only TLS goes through it: http is for this machine. */
  readonly proxy: HttpProxy | undefined
}

/** Opens a connection through a proxy, which looks up the name of the target. */
const openThrough = (
  proxy: HttpProxy,
  { hostname, millis, port }: SocketTarget,
  opened: Opened
) => {
  const begunAt = performance.now()
  const { hostname: host, port: proxyPort } = proxy
  const to = { hostname: host, port: proxyPort, lookup: anyLookup(), millis }
  openSocket(to, (error, socket) => {
    if (socket === null) return opened(codedError(proxyCode, `the proxy: ${error?.message}`), null)
    const left = millis - (performance.now() - begunAt)
    const deadline = setTimeout(() => socket.destroy(timedOut()), left)
    openTunnel(socket, `${hostname}:${port}`, proxy, (...result) => {
      clearTimeout(deadline)
      opened(...result)
    })
  })
}

/**
 * A connector for undici. `secure` is undici's own, which makes TLS of a socket. TCP, the tunnel
 * and TLS together may take `millis`.
 */
export const connectorOver =
  <To extends ConnectTo>(
    secure: (to: To & { readonly httpSocket: Socket }, opened: Opened) => unknown,
    { lookup, millis, proxy }: Outgoing
  ): ((to: To, opened: Opened) => void) =>
  (to, opened) => {
    const { hostname } = to
    const isSecure = to.protocol === "https:"
    const begunAt = performance.now()
    const target = { hostname, port: Number(to.port || (isSecure ? 443 : 80)), lookup, millis }
    const made: Opened = (error, socket) => {
      if (socket === null || !isSecure) return opened(error, socket)
      const left = millis - (performance.now() - begunAt)
      const deadline = setTimeout(() => secured.destroy(timedOut()), left)
      const secured = secure({ ...to, httpSocket: socket }, (failure, result) => {
        clearTimeout(deadline)
        // TLS that fails leaves the socket below it open.
        if (failure !== null) socket.destroy()
        opened(failure, result)
      }) as Socket
    }
    if (proxy === undefined || !isSecure || proxy.excludes(hostname, target.port))
      openSocket(target, made)
    else openThrough(proxy, target, made)
  }
