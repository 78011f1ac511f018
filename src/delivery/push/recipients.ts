// Subscription keys, decoded: a quarter of what encrypting costs is reading the same keys again for every broadcast.
import { type Recipient, recipientOf } from "./seal.ts"

/** Remembered by each process, the most recently used; about 1.5 KB each. */
const rememberedMax = 16_384

/** Decodes keys, or remembers them. Throws when p256dh is no point on the curve. */
export const makeRecipients = () => {
  const remembered = new Map<string, Recipient>()
  return (p256dh: string, auth: string): Recipient => {
    const name = p256dh + auth
    const known = remembered.get(name)
    const recipient = known ?? recipientOf(p256dh, auth)
    if (known !== undefined) remembered.delete(name)
    else if (remembered.size >= rememberedMax) remembered.delete(remembered.keys().next().value!)
    remembered.set(name, recipient)
    return recipient
  }
}
