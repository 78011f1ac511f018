// Contract 6: settings.
import { describe } from "vitest"
import { testSettings } from "./flows/settings.ts"
import { basicauth } from "./logins/basicauth.ts"
import { targetUrl } from "./target.ts"

describe.skipIf(targetUrl !== undefined)("a gateway", () => testSettings(basicauth))
