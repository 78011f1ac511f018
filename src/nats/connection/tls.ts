// TLS of the connection to NATS: the options for tls:// URLs, and TLS errors as texts that say what
// to do.
import { access, constants } from "node:fs/promises"
import type { Socket } from "node:net"
import { checkServerIdentity, getCACertificates, type PeerCertificate } from "node:tls"
import type { TlsOptions } from "@nats-io/transport-node"
import { NodeTransport } from "@nats-io/transport-node/lib/node_transport.js"
import { demandsTls, type NatsTlsFiles, natsTlsSettings } from "#settings/addresses.ts"

interface Handshake {
  readonly servername?: string
  readonly socket?: Socket
}

/**
 * Checks the certificate's name. Node checks the certificate of a server that is named by its IP
 * address against the name "localhost". So take the address from the connection instead.
 */
function checkName(this: Handshake, _name: string, certificate: PeerCertificate) {
  const name = this.servername || this.socket?.remoteAddress
  return name === undefined
    ? new Error("the connection was lost during the TLS handshake")
    : checkServerIdentity(name, certificate)
}

/** The root certificates of Node.js and of the system. Minimal images have none of their own. */
const knownAuthorities = () => [
  ...new Set([...getCACertificates("default"), ...getCACertificates("system")])
]

const readable = async (files: NatsTlsFiles): Promise<void> => {
  for (const [key, name] of Object.entries(natsTlsSettings)) {
    const file = files[key as keyof NatsTlsFiles]
    if (file === undefined) continue
    await access(file, constants.R_OK).catch(({ code }: NodeJS.ErrnoException) => {
      throw new Error(`${name}: ${file} cannot be read (${code})`)
    })
  }
}

/**
 * The options of the client that tls:// asks for. With `tls`, nats.js refuses a server without TLS
 * before the client sends its login, also when it reconnects (`connect` below closes a gap); only
 * servers that the address names are used. Without it (an address with nats://), nats.js uses TLS
 * only when the server offers it. The files are read again for every connection, so a renewed
 * certificate needs no restart.
 */
export const tlsOptions = async (
  url: string,
  files: NatsTlsFiles
): Promise<{ readonly tls?: TlsOptions; readonly ignoreClusterUpdates?: boolean }> => {
  if (!demandsTls(url)) return {}
  await readable(files)
  const { ca, cert, key } = files
  const tls = {
    checkServerIdentity: checkName,
    ...(ca === undefined ? { ca: knownAuthorities() } : { caFile: ca }),
    ...(cert === undefined || key === undefined ? {} : { certFile: cert, keyFile: key })
  }
  // The type knows a part of what goes to node:tls.
  // A server announces others before TLS begins, so whoever sits in between can name one, too.
  return { tls: tls as TlsOptions, ignoreClusterUpdates: true }
}

/** Error codes of OpenSSL: the chain ends in a certificate that the client does not trust. */
const untrusted = [
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE"
]

/** Replaces a TLS error by one that says what to do. Returns any other error as it is. */
export const inWords = (error: unknown, url: string, { cert }: NatsTlsFiles): unknown => {
  if (!(error instanceof Error)) return error
  const { code, message } = error as NodeJS.ErrnoException
  const explained = (words: string) => new Error(words, { cause: error })
  if (untrusted.includes(code ?? "")) {
    return explained(
      "no known authority signed the server's certificate: BELLCAST_NATS_TLS_CA names the file " +
        "of its authority, beside tls:// in BELLCAST_NATS_URL"
    )
  }
  if (!demandsTls(url)) return error
  if (message === noTls)
    return explained("the server offers no TLS, which tls:// demands; no login was sent")
  // The server closes the connection after the handshake, and nats.js waits for an answer.
  if (error.name === "TimeoutError" && cert === undefined)
    return explained(
      "no answer over TLS: if the server demands a certificate, set BELLCAST_NATS_TLS_CERT"
    )
  return error
}

const { connect } = NodeTransport.prototype

/** The text of nats.js about a server that offers no TLS. */
const noTls = "server does not support 'tls'"

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
