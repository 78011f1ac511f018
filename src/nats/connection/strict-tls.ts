// Makes nats.js obey its option `tls`: it sends no byte of a login without TLS.
import { NodeTransport } from "@nats-io/transport-node/lib/node_transport.js"

const { connect } = NodeTransport.prototype

/** The text of nats.js about a server that offers no TLS. */
export const noTls = "server does not support 'tls'"

/**
 * nats.js 3.4 refuses a server whose INFO has no `tls_available`, but begins TLS only if the value
 * is exactly `true`. An attacker in between who sends 1 would receive the login in clear text.
 * nats.js has no option and no hook for this, so wrap the method of the transport.
 */
NodeTransport.prototype.connect = async function (server, options) {
  await connect.call(this, server, options)
  if (!options.tls || this.isEncrypted()) return
  this.socket.destroy()
  throw new Error(noTls)
}
