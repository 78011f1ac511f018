// Subscription ids: SHA-256 of the endpoint's JSON text, with vectors of another
// implementation (json and hashlib of Python).
import { assert, describe, it } from "vitest"
import { jsonHash } from "#basics/json.ts"
import { endpointHash } from "#domain/subscription/owners.ts"

it.for([
  [
    "https://push.example.com/a",
    "12eccec801bb95c808b11cff317fdf759e0a3119b6922d7a9057940d14d3c132"
  ],
  [
    "https://fcm.googleapis.com/fcm/send/abc:def",
    "9a6cf4d347aa7fc6d7dbf0a9b85a7c983fd6b93b3da68fe5a1156aa88ad61c7a"
  ]
] as const)("the id of %s", ([endpoint, id]) => {
  assert.equal(endpointHash(endpoint), id)
})

describe.for([
  [
    "https://fcm.googleapis.com/fcm/send/a-b:c_d",
    "https://fcm.googleapis.com/wp/a-b:c_d",
    "https://fcm.googleapis.com/wp/%61%2Db%3Ac_d",
    "https://fcm.googleapis.com/fcm/send/a-b%3ac_d"
  ],
  [
    "https://updates.push.services.mozilla.com/wpush/v1/gAAA-_",
    "https://updates.push.services.mozilla.com/wpush/gAAA-_",
    "https://updates.push.services.mozilla.com/wpush/v1/gAAA-_==",
    "https://updates.push.services.mozilla.com/wpush/gAAA-_%3D"
  ],
  [
    "https://web.push.apple.com/QAb~",
    "https://web.push.apple.com/Q%41b%7e",
    "https://web.push.apple.com/QAb~?x=1"
  ],
  [
    "https://wns2-par02p.notify.windows.com/w/?token=a%2bb%2fc%3d",
    "https://wns2-par02p.notify.windows.com/w/?token=a%2Bb%2Fc%3D",
    "https://wns2-par02p.notify.windows.com/w/?token=a%2bb/c=",
    "https://wns2-par02p.notify.windows.com/w/?token=a%2bb%2fc%3d&x=1"
  ]
])("%s", ([first, ...others]) => {
  it("is the endpoint of which its id is the hash", () => {
    assert.equal(endpointHash(first!), jsonHash(first))
  })
  it.each(others)("is also %s", (other) => assert.equal(endpointHash(other), endpointHash(first!)))
})

it.each([
  ["https://fcm.googleapis.com/fcm/send/a", "https://fcm.googleapis.com/fcm/send//a"],
  ["https://fcm.googleapis.com/fcm/send/a", "https://jmt17.google.com/fcm/send/a"],
  ["https://fcm.googleapis.com/fcm/send/wp/a", "https://fcm.googleapis.com/fcm/send/fcm/send/a"],
  [
    "https://updates.push.services.mozilla.com/wpush/v1/a",
    "https://updates.push.services.mozilla.com/wpush/v2/a"
  ],
  ["https://push.example.com/wp/a", "https://push.example.com/fcm/send/a"],
  ["https://push.example.com/a-b", "https://push.example.com/a%2Db"],
  [
    "https://fcm.googleapis.com.evil.example/wp/a",
    "https://fcm.googleapis.com.evil.example/fcm/send/a"
  ]
])("%s is not %s", (one, other) => assert.notEqual(endpointHash(one), endpointHash(other)))
