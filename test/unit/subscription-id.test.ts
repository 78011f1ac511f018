// Subscription ids: SHA-256 of the endpoint's JSON text in ASCII, with vectors of another
// implementation (json and hashlib of Python).
import { assert, it } from "vitest"
import { subscriptionId } from "#gateway/subscriptions/id.ts"

it.for([
  [
    "https://push.example.com/a",
    "12eccec801bb95c808b11cff317fdf759e0a3119b6922d7a9057940d14d3c132"
  ],
  // The API rejects endpoints beyond ASCII, but their ids still follow the protocol.
  ["https://é.com/é", "7b492235bb23707eca10259bc66d5d6df14eb045ba524b94a80a0da6adf303cc"],
  [
    "https://push.example.com/\u{1f600}",
    "adb32fc7309ecb12baeb18d66ddc9a2132baf005065fa738965204fcd422fb61"
  ],
  [
    "https://push.example.com/\u007f",
    "22e6ab39a0fcd6e20f0bf6d551b5eeefb41b4df39f153bf72ec8f4c36f8d3483"
  ]
] as const)("the id of %s", ([endpoint, id]) => {
  assert.equal(subscriptionId(endpoint), id)
})
