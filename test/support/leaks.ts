// Looks for secrets in everything that a service leaves behind: its log, its metrics, audits, the
// messages of every stream and bucket, and the files of NATS.
import { createHash, createHmac } from "node:crypto"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { auditsOf } from "./audit.ts"
import { textsBelow } from "./folder.ts"
import { runCli } from "./run-cli.ts"
import type { Service } from "./service.ts"

/** Texts by the place where they were found. */
export type Places = ReadonlyMap<string, string>

/** The text in base64, without the digits at both ends, which depend on what stands beside it. */
const base64Of = (text: string): ReadonlyArray<string> =>
  [0, 1, 2].map((offset) => {
    const encoded = Buffer.from("x".repeat(offset) + text).toString("base64")
    return encoded.replace(/=+$/, "").slice(offset + (offset > 0 ? 1 : 0), -1)
  })

/** Hashes without a secret: whoever guesses an address can compute them. */
const hashesOf = (text: string): ReadonlyArray<string> =>
  [text, text.toLowerCase()].flatMap((each) =>
    (["hex", "base64"] as const).flatMap((encoding) => [
      createHash("md5").update(each).digest(encoding).replace(/=+$/, ""),
      createHash("sha1").update(each).digest(encoding).replace(/=+$/, ""),
      createHash("sha256").update(each).digest(encoding).replace(/=+$/, ""),
      createHmac("sha256", "").update(each).digest(encoding).replace(/=+$/, "")
    ])
  )

/** The forms in which a secret could stand in a text. Mail addresses: their hashes, too. */
const formsOf = (secret: string): ReadonlyArray<string> => {
  const base64 = [...base64Of(secret), ...(secret.includes("@") ? hashesOf(secret) : [])]
  return [
    secret,
    // Files are read byte by byte.
    Buffer.from(secret).toString("latin1"),
    encodeURIComponent(secret),
    encodeURIComponent(encodeURIComponent(secret)),
    new URLSearchParams({ "": secret }).toString().slice(1),
    JSON.stringify(secret).slice(1, -1),
    JSON.stringify(JSON.stringify(secret)).slice(3, -3),
    Buffer.from(secret).toString("hex"),
    ...base64,
    ...base64.map((each) => each.replaceAll("+", "-").replaceAll("/", "_"))
  ]
}

/**
 * The secrets that stand in one of these texts, each with the place and the form. Upper and lower
 * case count as the same. Throws for secrets that are too short to be told from other texts.
 */
export const secretsIn = (
  places: Places,
  secrets: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const sought = secrets.map((secret) => {
    if (secret.length < 8) throw new Error(`"${secret}" is too short to look for`)
    return { secret, forms: formsOf(secret).map((form) => form.toLowerCase()) }
  })
  return [...places].flatMap(([place, text]) => {
    const lower = text.toLowerCase()
    return sought.flatMap(({ forms, secret }) => {
      const form = forms.find((each) => lower.includes(each))
      return form === undefined ? [] : [`${place}: ${secret} as ${form}`]
    })
  })
}

/** Every message of every stream, and so of every bucket: subject, headers and data. */
const storedIn = async (natsUrl: string): Promise<Places> => {
  const nc = await connect({ servers: natsUrl })
  const places = new Map<string, string>()
  try {
    const jsm = await jetstreamManager(nc)
    for await (const { config, state } of jsm.streams.list()) {
      // The search of the files would prove nothing.
      if (config.compression === "s2") throw new Error(`${config.name} is compressed`)
      const texts = [JSON.stringify(config)]
      for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq; seq++) {
        const found = await jsm.streams.getMessage(config.name, { seq })
        if (found !== null) texts.push(`${found.subject} ${found.header} ${found.string()}`)
      }
      for await (const consumer of jsm.consumers.list(config.name))
        texts.push(JSON.stringify(consumer))
      places.set(`stream ${config.name}`, texts.join("\n"))
    }
  } finally {
    await nc.close()
  }
  return places
}

/** The audits of all broadcasts, as text, as JSON, and as the code has them. */
const auditsIn = async (natsUrl: string, broadcasts: ReadonlyArray<string>): Promise<string> => {
  const env = { BELLCAST_NATS_URL: natsUrl }
  const texts = [JSON.stringify(await auditsOf(natsUrl, broadcasts))]
  for (const each of broadcasts)
    for (const more of [[], ["--json"]]) {
      const { code, stderr, stdout } = await runCli(["audit", each, ...more], env)
      if (code !== 0) throw new Error(`no audit of broadcast ${each}: ${stderr}`)
      texts.push(stdout)
    }
  return texts.join("\n")
}

/** The things that a service leaves behind. */
export interface Traces {
  readonly services: ReadonlyArray<Service>
  readonly natsUrl: string
  /** The folder of the nats-server; undefined where the test cannot read it. */
  readonly folder: string | undefined
  /** Broadcasts to audit. */
  readonly broadcasts?: ReadonlyArray<string>
}

/** All texts that services which still run have left behind. */
export const tracesOf = async ({
  broadcasts = [],
  folder,
  natsUrl,
  services
}: Traces): Promise<Places> => {
  const places = new Map(await storedIn(natsUrl))
  for (const [i, service] of services.entries()) {
    const metrics = [`${service.metricsUrl()}/metrics`, `${service.url}/__metrics__`]
    const texts = await Promise.all(metrics.map(async (url) => (await fetch(url)).text()))
    places.set(`metrics ${i + 1}`, texts.join("\n"))
    places.set(`log ${i + 1}`, service.output())
  }
  if (broadcasts.length > 0) places.set("audit", await auditsIn(natsUrl, broadcasts))
  if (folder !== undefined) places.set("files", await textsBelow(folder))
  return places
}
