// A gateway whose storage fails: its responses, its log, and its shutdown.
import { describe } from "vitest"
import { testTrouble } from "./flows/trouble.ts"
import { basicauth } from "./logins/basicauth.ts"
import { targetUrl } from "./target.ts"

describe.skipIf(targetUrl !== undefined)("a gateway in trouble", () => testTrouble(basicauth))
