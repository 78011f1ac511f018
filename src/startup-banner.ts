// What a newcomer reads first: where the service is, and four commands that show what it is for.
import { urlDefault } from "#cli/listen/api-client.ts"
import { textOf } from "#embedded/folder.ts"

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

export interface Start {
  readonly url: string
  /** Host and port, without the login. */
  readonly natsHost: string
  /** The file that holds the address of NATS with the login. */
  readonly natsUrlFile: string
  readonly vapidPublicKey: string
  /** Whether the service would accept the commands shown. */
  readonly isForTrying: boolean
}

/** The text for a terminal. It holds no secret: what is printed may end in a log. */
export const story = ({
  url,
  natsHost,
  natsUrlFile,
  vapidPublicKey,
  isForTrying
}: Start): string => `
  Bellcast is ready.

    HTTP API           ${url}
    NATS               ${natsHost}; for \`nats\`: export NATS_URL=${textOf(natsUrlFile)}
    VAPID public key   ${vapidPublicKey}
${isForTrying ? trial(url) : ""}
  Ctrl-C ends it; your data stays.
`
