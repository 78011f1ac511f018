// A self-signed certificate for `localhost` and 127.0.0.1, valid 2020 to 2120, so that pushes in
// tests use real TLS. The key is public: trust the certificate in tests only.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** Path of the certificate, for `NODE_EXTRA_CA_CERTS` of a process under test. */
export const certificatePath = fileURLToPath(new URL("localhost.cert.pem", import.meta.url))

/** Environment that makes a child Node process trust the simulator. */
export const trustingEnvironment = { NODE_EXTRA_CA_CERTS: certificatePath } as const

/** PEM texts: what a server presents, and (`cert`) what a client in this process trusts as `ca`. */
export const testCertificate = () => ({
  cert: readFileSync(certificatePath, "utf8"),
  key: readFileSync(new URL("localhost.key.pem", import.meta.url), "utf8")
})
