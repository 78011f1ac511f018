// A client that a library generates from the API description alone subscribes, registers,
// publishes, follows the broadcast, and leaves.
import { type OpenAPIClient, OpenAPIClientAxios } from "openapi-client-axios"
import { assert, it } from "vitest"
import { until } from "../../support/client.ts"
import { Api } from "../api.ts"
import type { Login } from "../logins/login.ts"
import { start } from "../target.ts"

/** A generated client before a gateway with the policy of a login. */
export const testGeneratedClient = (login: Login): void => {
  it("subscribes, registers, publishes and leaves", { timeout: 120_000 }, async () => {
    await using running = await start(1, login)
    const { target } = running
    const api = new Api(target)
    const generator = new OpenAPIClientAxios({
      definition: `${target.origin}/v1/__api__`,
      withServer: { url: `${target.origin}/v1` }
    })
    const client = await generator.init<OpenAPIClient>()
    const names = generator.getOperations().map(({ operationId }) => operationId)
    assert.strictEqual(new Set(names).size, names.length)
    for (const name of names) assert.typeOf(client[name!], "function", name)

    const browser = { headers: await api.headersOf(api.me) }
    const publisher = { headers: await api.headersOf(target.publisher) }
    const channel = { channel: "news" }
    const { data: root } = await client["get-root"]!()
    assert.strictEqual(root.http_api_version, "1.0")

    const stored = await client["post-subscription-list"]!(
      {},
      { data: api.subscription("generated") },
      browser
    )
    assert.strictEqual(stored.status, 201)
    const { data: list } = await client["get-subscription-list"]!({}, null, browser)
    assert.strictEqual(list.data.length, 1)
    const subscription = { id: list.data[0].id }
    assert.strictEqual((await client["put-registration"]!(channel, null, browser)).status, 202)
    assert.strictEqual(
      (await client["get-channel"]!(channel, null, browser)).data.data.registrations,
      1
    )

    const accepted = await client["post-channel"]!(channel, { data: { title: "hello" } }, publisher)
    assert.strictEqual(accepted.status, 202)
    const broadcast = accepted.headers["location"].split("/").at(-1)
    const progress = async () =>
      (await client["get-broadcast"]!({ ...channel, broadcast }, null, publisher)).data.data
    // No worker delivers here. The planner has counted the recipients.
    assert.deepInclude(await until(progress, ({ shards }) => shards > 0), {
      id: broadcast,
      shards: 1,
      shards_done: 0,
      finished: false
    })

    const removed = await client["delete-subscription"]!(subscription, null, browser)
    assert.deepInclude(removed.data.data, { ...subscription, deleted: true })
    assert.strictEqual((await client["delete-registration"]!(channel, null, browser)).status, 202)
    const gone = await client["get-subscription"]!(subscription, null, {
      ...browser,
      validateStatus: () => true
    })
    assert.strictEqual(gone.status, 404)
  })
}
