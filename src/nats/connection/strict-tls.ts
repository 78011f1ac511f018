// Makes nats.js keep the promise of its option `tls`: no byte of a login over a connection without it.
import { NodeTransport } from "@nats-io/transport-node/lib/node_transport.js"

const { connect } = NodeTransport.prototype

/** What nats.js itself says of a server that offers no TLS. */
export const noTls = "server does not support 'tls'"

/**
 * nats.js 3.4 refuses a server whose INFO has no `tls_available`, but begins TLS only where the
 * value is exactly `true`: whoever sits in between and sends 1 would be told the login in clear.
 * There is no option and no hook for it, so the transport's own method is wrapped.
 */
NodeTransport.prototype.connect = async function (server, options) {
  await connect.call(this, server, options)
  if (!options.tls || this.isEncrypted()) return
  this.socket.destroy()
  throw new Error(noTls)
}
