// Subscription ids: SHA-256 of the endpoint's JSON text, with vectors of another
// implementation (json and hashlib of Python).
import { assert, it } from "vitest"
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
