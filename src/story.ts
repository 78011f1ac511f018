// What a newcomer reads first: where the service is, and four commands that show what it is for.
import { urlDefault } from "#cli/api-client.ts"

const argsFor = (url: string) => (url === `${urlDefault}/` ? "" : ` ARGS="--url ${url}"`)

const trial = (url: string): string => `
  See it work. In a second terminal, be a browser that subscribes and registers to the channel "news":

    make listen CHANNEL=news${argsFor(url)}

  In a third, publish:

    curl -i -u publisher:secret -H 'Content-Type: application/json' \\
      -d '{"data":{"title":"Hello","body":"from Bellcast","published_at":'$(node -p 'Date.now()')'}}' \\
      ${url}channels/news

  The first one prints the decrypted payload, and how long it took. The Location header of the answer says what became of it, and the
  number at its end what became of every push:

    curl -s -u publisher:secret ${url}channels/news/broadcasts/NUMBER
    make audit BROADCAST=NUMBER
`

/** `isForTrying`: whether what it shows would be let in. */
export const story = (
  url: string,
  natsUrl: string,
  vapidPublicKey: string,
  isForTrying: boolean
): string => `
  Bellcast is ready.

    HTTP API           ${url}
    NATS               ${natsUrl}
    VAPID public key   ${vapidPublicKey}
${isForTrying ? trial(url) : ""}
  Ctrl-C ends it; your data stays.
`
