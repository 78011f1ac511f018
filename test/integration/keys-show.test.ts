// Secrets stored beside an embedded server, shown as settings that let another process join the
// service.
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { addressIn, folderAt } from "#embedded/folder.ts"
import { loadOrCreateSecrets } from "#secrets/file.ts"
import { call } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { startService } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"
import { keys, rotate, withLines } from "../support/vapid-keys.ts"

const dataFolder = async () => {
  const dir = await temporaryFolder()
  return { dir, env: { BELLCAST_DATA_DIR: dir } }
}

describe("the secrets of an embedded server's service", () => {
  it("are shown as lines with which a second process starts beside it, former keys included", {
    timeout: 60_000
  }, async () => {
    const data = await dataFolder()
    await Effect.runPromise(loadOrCreateSecrets(data.dir))
    await rotate(data.env)
    await using service = await startService({ env: data.env })
    const natsUrl = (await addressIn(folderAt(join(data.dir, "nats"))))!.url
    // Set already, as after a first try.
    const { code, stderr, stdout } = await keys({ ...data.env, BELLCAST_NATS_URL: natsUrl }, "show")
    assert.deepEqual([code, stderr], [0, ""])
    const shown = withLines({}, stdout)
    const names = [
      "NATS_URL",
      "VAPID_PUBLIC_KEY",
      "VAPID_PRIVATE_KEY",
      "VAPID_FORMER_KEYS",
      "VAPID_SUBJECT",
      "USERID_HMAC_SECRET"
    ]
    assert.deepEqual(
      Object.keys(shown),
      names.map((name) => `BELLCAST_${name}`)
    )
    assert.equal(shown["BELLCAST_NATS_URL"], natsUrl)
    await using second = await startService({ roles: "gateway,delivery", env: shown })
    const keyOf = async (url: string) =>
      (await call(url, "GET", "/vapid-public-key")).body.data.vapid_public_key
    assert.equal(await keyOf(second.url), await keyOf(service.url))
    await second.stop()
    const { password } = new URL(natsUrl)
    for (const each of [service, second]) assert.notInclude(each.output(), password)
    const file = /export NATS_URL="\$\(cat (.*)\)"/.exec(service.output())?.[1] ?? ""
    assert.equal(await readFile(file, "utf8"), natsUrl)
    // The command line finds the login in the data folder.
    await using cli = await spawnCli(["streams", "--live"], data.env)
    assert.equal(await cli.exit(), 0)
    assert.match(cli.output.stdout, /^BELLCAST_LOG /m)
    await service.stop()
  })

  it("are not made by asking for them, and not shown where others are set", async () => {
    const data = await dataFolder()
    const none = await keys(data.env, "show")
    assert.deepEqual([none.code, none.stdout], [1, ""])
    assert.match(none.stderr, /^bellcast: there is no .*secrets\.json/)
    assert.deepEqual(await readdir(data.dir), [])
    const { vapidKeys } = await Effect.runPromise(loadOrCreateSecrets(data.dir))
    const other = await keys(
      { ...data.env, BELLCAST_VAPID_PUBLIC_KEY: vapidKeys[0]!.publicKey },
      "show"
    )
    assert.deepEqual([other.code, other.stdout], [1, ""])
    assert.match(other.stderr, /^bellcast: VAPID keys are set here/)
  })
})
