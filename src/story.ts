// What a newcomer reads first: where the service is, and three commands that show what it is for.

export const story = (url: string, natsUrl: string, vapidPublicKey: string): string => `
  Bellcast is ready.

    HTTP API           ${url}
    NATS               ${natsUrl}
    VAPID public key   ${vapidPublicKey}

  See it work. In a second terminal, be a browser that subscribes and registers to the channel "news":

    make listen CHANNEL=news

  In a third, publish:

    curl -i -u publisher:secret -H 'Content-Type: application/json' \\
      -d '{"data":{"title":"Hello","body":"from Bellcast"}}' ${url}channels/news

  The first one prints the decrypted payload. The Location header of the answer says what became of it:

    curl -s -u publisher:secret ${url}channels/news/broadcasts/BROADCAST

  Ctrl-C ends it; your data stays in .bellcast/.
`
