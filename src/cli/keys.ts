// `bellcast keys`: the secrets that a service beside an existing NATS needs, made once and kept by whoever runs it.
import { randomBytes } from "node:crypto"
import { Console } from "effect"
import { Command } from "effect/cli"
import webpush from "web-push"

const lines = (): string => {
  const { privateKey, publicKey } = webpush.generateVAPIDKeys()
  return [
    "# Made by `bellcast keys`. Whoever loses these loses every subscription made with them.",
    `BELLCAST_VAPID_PUBLIC_KEY=${publicKey}`,
    `BELLCAST_VAPID_PRIVATE_KEY=${privateKey}`,
    "BELLCAST_VAPID_SUBJECT=mailto:you@your-domain.example",
    `BELLCAST_USERID_HMAC_SECRET=${randomBytes(32).toString("base64url")}`,
    "BELLCAST_CHANNEL_WRITE_PRINCIPALS="
  ].join("\n")
}

/** The verb. */
export const keysCommand = Command.make("keys", {}, () => Console.log(lines())).pipe(
  Command.withDescription("Make a VAPID key pair and a user id secret, as lines for an .env file")
)
