// HMAC-SHA256 (RFC 2104) for many texts with one key. Uses one-shot hashes, which take 2.4 us; Hmac
// of node:crypto takes 12 us.
import { type BinaryToTextEncoding, hash } from "node:crypto"

const blockBytes = 64

/** A function from UTF-8 texts to their HMAC with a key, in a given encoding. */
export const hmacSha256 = (
  secret: string
): ((text: string, encoding: BinaryToTextEncoding) => string) => {
  const given = Buffer.from(secret, "utf8")
  const key = Buffer.alloc(blockBytes)
  key.set(given.length > blockBytes ? hash("sha256", given, "buffer") : given)
  const inner = key.map((byte) => byte ^ 0x36)
  const outer = key.map((byte) => byte ^ 0x5c)
  return (text, encoding) => {
    const message = Buffer.allocUnsafe(blockBytes + Buffer.byteLength(text))
    message.set(inner)
    message.write(text, blockBytes, "utf8")
    const last = Buffer.allocUnsafe(blockBytes + 32)
    last.set(outer)
    last.set(hash("sha256", message, "buffer"), blockBytes)
    return hash("sha256", last, encoding)
  }
}
