// Certificates for tests, made by openssl: an authority, and what it signs.
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"

export interface Certificate {
  readonly cert: string
  readonly key: string
}

const ecKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

/** An authority of this name in a folder. */
export const makeAuthority = (folder: string, name: string) => {
  const fileOf = (file: string) => join(folder, `${name}-${file}`)
  const openssl = (...args: ReadonlyArray<string>) =>
    execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] })
  const ca = fileOf("ca.pem")
  const caKey = fileOf("ca.key")
  const isAuthority = ["-addext", "basicConstraints=critical,CA:TRUE", "-days", "2"]
  const self = ["-subj", `/CN=${name}`, "-keyout", caKey, "-out", ca]
  openssl("req", "-x509", ...ecKey, ...isAuthority, ...self)
  return {
    ca,
    /** A certificate for `DNS:localhost`, `IP:127.0.0.1` and the like. */
    sign: (subjectAltName: string): Certificate => {
      const stem = subjectAltName.replaceAll(/[^A-Za-z0-9]/g, "-")
      const [cert, key] = [fileOf(`${stem}.pem`), fileOf(`${stem}.key`)]
      const [request, extensions] = [fileOf(`${stem}.csr`), fileOf(`${stem}.ext`)]
      writeFileSync(extensions, `subjectAltName=${subjectAltName}\n`)
      openssl("req", ...ecKey, "-subj", `/CN=${stem}`, "-keyout", key, "-out", request)
      const signed = ["-CA", ca, "-CAkey", caKey, "-days", "2", "-extfile", extensions]
      openssl("x509", "-req", "-in", request, ...signed, "-out", cert)
      return { cert, key }
    }
  }
}
