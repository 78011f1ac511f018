// Types for the part of http_ece that the receiving side uses; the package ships none.
declare module "http_ece" {
  import type { ECDH } from "node:crypto"

  interface Params {
    readonly version: "aes128gcm"
    /** Explicit 16-byte content key (RFC 8188), instead of a key agreement. */
    readonly key?: Buffer
    /** The receiver's P-256 key pair (RFC 8291). */
    readonly privateKey?: ECDH
    readonly authSecret?: Buffer
  }
  const ece: {
    /** Plaintext of an encrypted body. Throws when the header, the tag or the padding is wrong. */
    readonly decrypt: (body: Buffer, params: Params) => Buffer
  }
  export default ece
}
