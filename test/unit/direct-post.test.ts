// Who may name users is decided before their pseudonyms are made.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { Settings } from "#config"
import { directPost } from "#gateway/broadcasts/publish.ts"
import type { Call } from "#gateway/http/request.ts"
import type { Refused } from "#gateway/http/response.ts"
import { Identity } from "#identity/identity.ts"

it("a caller who may not publish costs no pseudonym of those whom the request names", async () => {
  const made: Array<string> = []
  const identity = {
    identify: () => Effect.die("not asked"),
    policies: [],
    isUserId: () => true,
    userOf: (id: string) => void made.push(id)
  }
  const users = Array.from({ length: 1_000 }, (_, i) => `openid:${i}`)
  const input = { body: { to: { users, except_users: users } }, headers: {}, key: undefined }
  const caller = { id: "openid:eve", principals: ["openid:eve"], rights: undefined }
  const refused = await directPost
    .run(input, { caller } as unknown as Call)
    .pipe(
      Effect.flip,
      Effect.provideService(Identity, identity as unknown as Identity["Service"]),
      Effect.provide(Settings.layer),
      (program) => Effect.runPromise(program as unknown as Effect.Effect<Refused>)
    )
  assert.equal(refused._tag, "Refused")
  assert.isEmpty(made)
})
