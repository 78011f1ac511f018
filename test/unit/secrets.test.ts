// Where the secrets of a start come from: the data folder or the environment.
import { mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it, vi } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted, Result } from "effect"
import webpush from "web-push"
import { Settings } from "#config"
import { Secrets } from "#secrets/secrets.ts"
import { temporaryFolder } from "../support/folder.ts"

const pair = webpush.generateVAPIDKeys()
const other = webpush.generateVAPIDKeys()
const userSecret = "a secret of users, of thirty-two bytes"

const read = (env: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { useridHmacSecret, vapidKeys, vapidPublicKey, vapidSubject } = yield* Secrets
    const keys = vapidKeys.map(({ privateKey, publicKey, state }) => ({
      publicKey,
      state,
      ...(privateKey === undefined ? {} : { privateKey: Redacted.value(privateKey) })
    }))
    const plain = { useridHmacSecret: Redacted.value(useridHmacSecret), vapidPublicKey, keys }
    return vapidSubject === undefined ? plain : { ...plain, subject: vapidSubject }
  }).pipe(
    Effect.provide(
      Secrets.layer.pipe(
        Layer.provide(Settings.layer),
        Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))
      )
    ),
    Effect.result,
    Effect.runPromise
  )

/** What stopped the start. */
const fault = async (env: Readonly<Record<string, string>>) => {
  const result = await read(env)
  return Result.isFailure(result) ? result.failure.message : "nothing"
}

const folder = async () => ({ dir: join(await temporaryFolder(), "data") })

describe("beside the embedded server", () => {
  it("secrets are made once, for the owner's eyes only, and stay the same", async () => {
    const data = await folder()
    const env = { BELLCAST_DATA_DIR: data.dir }
    const first = Result.getOrThrow(await read(env))
    const file = join(data.dir, "secrets.json")
    assert.strictEqual((await stat(file)).mode & 0o777, 0o600)
    const text = await readFile(file, "utf8")
    assert.deepStrictEqual(Result.getOrThrow(await read(env)), first)
    assert.strictEqual(await readFile(file, "utf8"), text)
    assert.deepStrictEqual(await readdir(data.dir), ["secrets.json"])
    const { v, vapidKeys } = JSON.parse(text)
    assert.strictEqual(v, 1)
    assert.lengthOf(vapidKeys, 1)
    assert.strictEqual(first.vapidPublicKey, vapidKeys[0].publicKey)
    assert.isAtMost(Math.abs(Date.now() - Date.parse(vapidKeys[0].createdAt)), 60_000)
    assert.isAtLeast(Buffer.from(first.useridHmacSecret, "base64url").length, 32)
  })

  it("secrets differ from those of another data folder", async () => {
    const a = await folder()
    const b = await folder()
    const [first, second] = [
      await read({ BELLCAST_DATA_DIR: a.dir }),
      await read({ BELLCAST_DATA_DIR: b.dir })
    ].map(Result.getOrThrow)
    assert.notStrictEqual(first?.useridHmacSecret, second?.useridHmacSecret)
    assert.notStrictEqual(first?.vapidPublicKey, second?.vapidPublicKey)
  })

  it("a damaged file stops the start and is left as it is", async () => {
    const data = await folder()
    const env = { BELLCAST_DATA_DIR: data.dir }
    await read(env)
    const file = join(data.dir, "secrets.json")
    const whole = await readFile(file, "utf8")
    for (const damaged of [
      "",
      "{}",
      whole.slice(0, -20),
      whole.replace("vapidKeys", "vapid"),
      whole.replaceAll("privateKey", "private"),
      "[]"
    ]) {
      await writeFile(file, damaged)
      assert.include(await fault(env), `${file} cannot be read`)
      assert.strictEqual(await readFile(file, "utf8"), damaged)
    }
  })

  it("a file that cannot be read stops the start, and no other takes its place", async () => {
    const data = await folder()
    const file = join(data.dir, "secrets.json")
    await mkdir(data.dir)
    // A link to itself: there, but not to be opened, whoever we are.
    await symlink(file, file)
    assert.include(
      await fault({ BELLCAST_DATA_DIR: data.dir }),
      `${file} cannot be used (ELOOP): BELLCAST_DATA_DIR must`
    )
    assert.strictEqual(await readlink(file), file)
  })

  it("a folder that cannot be made stops the start, without advice to remove secrets", async () => {
    const data = await folder()
    await writeFile(data.dir, "")
    const message = await fault({ BELLCAST_DATA_DIR: join(data.dir, "in-a-file") })
    assert.match(message, /secrets\.json cannot be used \(ENOTDIR\): BELLCAST_DATA_DIR must/)
    assert.notInclude(message, "remove")
  })

  it("a kept key pair that does not fit together stops the start", async () => {
    const data = await folder()
    const env = { BELLCAST_DATA_DIR: data.dir }
    await read(env)
    const file = join(data.dir, "secrets.json")
    const whole = await readFile(file, "utf8")
    const { vapidPublicKey } = Result.getOrThrow(await read(env))
    await writeFile(file, whole.replace(vapidPublicKey, other.publicKey))
    assert.match(await fault(env), /^key 1 in .*secrets\.json: the public key does not belong/)
  })

  it("what the environment gives goes before what is kept", async () => {
    const data = await folder()
    const secrets = {
      BELLCAST_USERID_HMAC_SECRET: userSecret,
      BELLCAST_VAPID_SUBJECT: "mailto:ops@example.org"
    }
    const result = Result.getOrThrow(await read({ BELLCAST_DATA_DIR: data.dir, ...secrets }))
    assert.deepInclude(result, { useridHmacSecret: userSecret, subject: "mailto:ops@example.org" })
  })
})

describe("beside an existing server", () => {
  const all = {
    BELLCAST_NATS_URL: "nats://127.0.0.1:4222",
    BELLCAST_USERID_HMAC_SECRET: userSecret,
    BELLCAST_VAPID_PUBLIC_KEY: pair.publicKey,
    BELLCAST_VAPID_PRIVATE_KEY: pair.privateKey,
    BELLCAST_VAPID_SUBJECT: "mailto:ops@example.com"
  }
  const without = (name: keyof typeof all) =>
    Object.fromEntries(Object.entries(all).filter(([key]) => key !== name))

  it("secrets come from the environment, and no file is made", async () => {
    const data = await folder()
    const result = Result.getOrThrow(await read({ ...all, BELLCAST_DATA_DIR: data.dir }))
    assert.deepStrictEqual(result, {
      useridHmacSecret: userSecret,
      vapidPublicKey: pair.publicKey,
      keys: [{ publicKey: pair.publicKey, privateKey: pair.privateKey, state: "current" }],
      subject: "mailto:ops@example.com"
    })
    assert.isTrue(
      await stat(data.dir).then(
        () => false,
        () => true
      )
    )
  })

  it.for([
    "BELLCAST_USERID_HMAC_SECRET",
    "BELLCAST_VAPID_PUBLIC_KEY",
    "BELLCAST_VAPID_PRIVATE_KEY",
    "BELLCAST_VAPID_SUBJECT"
  ] as const)("the start stops for want of %s, and says so", async (name) => {
    assert.isTrue((await fault(without(name))).startsWith(`${name} must be set`))
  })

  it("a process without delivery needs no private key and no subject", async () => {
    const { BELLCAST_VAPID_PRIVATE_KEY, BELLCAST_VAPID_SUBJECT, ...some } = all
    const keys = [{ publicKey: pair.publicKey, state: "current" as const }]
    const expected = { useridHmacSecret: userSecret, vapidPublicKey: pair.publicKey, keys }
    assert.deepStrictEqual(
      Result.getOrThrow(await read({ ...some, BELLCAST_ROLES: "gateway,tally" })),
      expected
    )
    assert.deepStrictEqual(
      Result.getOrThrow(await read({ ...all, BELLCAST_ROLES: "gateway" })),
      expected
    )
  })

  it("former keys sign beside the current one, in delivery processes only", async () => {
    const BELLCAST_VAPID_FORMER_KEYS = `${other.publicKey}:${other.privateKey}`
    const former = { publicKey: other.publicKey, state: "former" as const }
    const { keys } = Result.getOrThrow(await read({ ...all, BELLCAST_VAPID_FORMER_KEYS }))
    assert.deepStrictEqual(keys, [
      { ...former, privateKey: other.privateKey },
      { publicKey: pair.publicKey, privateKey: pair.privateKey, state: "current" }
    ])
    const gateway = Result.getOrThrow(
      await read({ ...all, BELLCAST_VAPID_FORMER_KEYS, BELLCAST_ROLES: "gateway" })
    )
    assert.deepStrictEqual(gateway.keys, [former, { publicKey: pair.publicKey, state: "current" }])
    assert.match(
      await fault({ ...all, BELLCAST_VAPID_FORMER_KEYS: `${pair.publicKey}:${pair.privateKey}` }),
      /^BELLCAST_VAPID_FORMER_KEYS: the key .* is here twice, or is the current one/
    )
    assert.match(
      await fault({ ...all, BELLCAST_VAPID_FORMER_KEYS: `${other.publicKey}:half` }),
      /^BELLCAST_VAPID_FORMER_KEYS, entry 1: /
    )
  })

  it("everything that is wrong is told at once", async () => {
    const message = await fault({
      BELLCAST_NATS_URL: all.BELLCAST_NATS_URL,
      BELLCAST_VAPID_SUBJECT: "me",
      BELLCAST_VAPID_FORMER_KEYS: "x:retired"
    })
    const missing =
      "BELLCAST_VAPID_PUBLIC_KEY, BELLCAST_VAPID_PRIVATE_KEY and " +
      "BELLCAST_USERID_HMAC_SECRET must be set"
    const lines = message.split("\n")
    assert.lengthOf(lines, 3)
    for (const [i, start] of [
      "BELLCAST_VAPID_FORMER_KEYS, entry 1: ",
      "BELLCAST_VAPID_SUBJECT must",
      missing
    ].entries()) {
      assert.isTrue(lines[i]?.startsWith(start), lines[i])
    }
    assert.match(lines[2]!, /`bellcast keys new --env FILE`.*`bellcast keys show`/)
  })

  it("an environment in which http_ece prints keys stops the start", async () => {
    vi.stubEnv("ECE_KEYLOG", "1")
    const message = await fault(all).finally(() => vi.unstubAllEnvs())
    assert.match(message, /^ECE_KEYLOG=1 prints encryption keys/)
  })

  it("an unusable subject, key pair or secret stops the start and is not shown", async () => {
    assert.match(
      await fault({ ...all, BELLCAST_VAPID_SUBJECT: "mailto:ops@localhost" }),
      /^BELLCAST_VAPID_SUBJECT must name a public domain/
    )
    const mixed = await fault({ ...all, BELLCAST_VAPID_PUBLIC_KEY: other.publicKey })
    assert.match(mixed, /^BELLCAST_VAPID_PUBLIC_KEY and BELLCAST_VAPID_PRIVATE_KEY: /)
    assert.notInclude(mixed, pair.privateKey)
    assert.match(
      await fault({ ...all, BELLCAST_USERID_HMAC_SECRET: "" }),
      /^BELLCAST_USERID_HMAC_SECRET must /
    )
  })
})
