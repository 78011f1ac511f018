// Kinto's own JavaScript client works unchanged.
import { describe } from "vitest"
import { testKintoClient } from "./flows/kinto-client.ts"
import { basicauth } from "./logins/basicauth.ts"
import { targetUrl } from "./target.ts"

describe.skipIf(targetUrl !== undefined)("kinto-http", () => testKintoClient(basicauth))
