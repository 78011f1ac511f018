// The responses of a gateway to bytes that no client library sends.
import { describe } from "vitest"
import { testWire } from "./flows/wire.ts"
import { basicauth } from "./logins/basicauth.ts"
import { targetUrl } from "./target.ts"

describe.skipIf(targetUrl !== undefined)("bytes on a connection", () => testWire(basicauth))
