// A client that a library generates from the API description alone works.
import { describe } from "vitest"
import { testGeneratedClient } from "./flows/generated-client.ts"
import { basicauth } from "./logins/basicauth.ts"
import { targetUrl } from "./target.ts"

describe.skipIf(targetUrl !== undefined)("a client generated from the description", () =>
  testGeneratedClient(basicauth)
)
