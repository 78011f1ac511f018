// The text that a start beside an embedded server prints: where the service is, and commands to
// try.
import { urlDefault } from "#config"
import { textOf } from "#embedded/folder.ts"

const argsFor = (url: string) => (url === `${urlDefault}/` ? "" : ` ARGS="--url ${url}"`)

const demo = (url: string): string => ` See a push in your browser:

    ${url}demo/
`

/** The shell sets the time, which `make listen` shows the age by. */
const trial = (url: string): string => `
  Or in terminals, where NUMBER is the id in the response of the second command:

    make listen CHANNEL=news${argsFor(url)}
    curl -u publisher:secret -H 'Content-Type: application/json' \\
      -d '{"data":{"web_push":8030,"published_at":'$(node -p 'Date.now()')',"notification":
        {"title":"Hello","body":"from Bellcast","navigate":"https://example.org/"}}}' \\
      ${url}channels/news
    curl -s -u publisher:secret ${url}channels/news/broadcasts/NUMBER
    make audit BROADCAST=NUMBER
`

const openLine = (open: ReadonlyArray<string>): string =>
  open.length === 0 ? "" : `    Open to everybody  ${open.join(", ")}\n`

export interface Banner {
  /** Base URL of the HTTP API; undefined: this process does not serve it. */
  readonly url: string | undefined
  /** Host and port of the metrics port; undefined when it is off. */
  readonly metricsAddress: string | undefined
  /** Host and port of NATS, without the login. */
  readonly natsHost: string
  /** The file with the address and login of NATS. */
  readonly natsUrlFile: string
  readonly vapidPublicKey: string
  /** The policies, and who may publish. */
  readonly logins: string
  readonly publishers: string
  /** The parts of the service that anybody may use, or without limit. */
  readonly open: ReadonlyArray<string>
  /** Whether the service has the demo. */
  readonly hasDemo: boolean
  /** Whether the service would accept the commands shown. */
  readonly isForTrying: boolean
}

/** The text. It contains no secret, as the output may end up in a log. */
export const startupBanner = (start: Banner): string => {
  const { hasDemo, isForTrying, metricsAddress, natsHost, natsUrlFile, open, url } = start
  return `
  Bellcast is ready.${hasDemo && url !== undefined ? demo(url) : "\n"}
    HTTP API           ${url ?? "not in this process"}
    Metrics, probes    ${metricsAddress === undefined ? "off" : `http://${metricsAddress}/metrics`}
    NATS               ${natsHost}; for \`nats\`: export NATS_URL=${textOf(natsUrlFile)}
    VAPID public key   ${start.vapidPublicKey}
    Logins             ${start.logins}
    Publishers         ${start.publishers}
${openLine(open)}${isForTrying && url !== undefined ? trial(url) : ""}
  Ctrl-C stops the service; your data stays.
`
}
