// Types for http_ece, which has none: decrypting, and in tests encrypting in ways that web-push
// refuses.
declare module "http_ece" {
  import type { ECDH } from "node:crypto"

  interface Params {
    readonly version: "aes128gcm"
    /** Explicit 16-byte content key (RFC 8188), instead of a key agreement. */
    readonly key?: Buffer
    /** Our P-256 key pair (RFC 8291). */
    readonly privateKey?: ECDH
    /** To encrypt: the receiver's public key. */
    readonly dh?: Buffer
    readonly authSecret?: Buffer
  }
  const ece: {
    /** Plaintext of an encrypted body. Throws when the header, the tag or the padding is wrong. */
    readonly decrypt: (body: Buffer, params: Params) => Buffer
    /** The encrypted body of a text, with a random salt. */
    readonly encrypt: (text: Buffer, params: Params) => Buffer
  }
  export default ece
}
