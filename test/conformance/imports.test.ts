// Contract 3.5: what was imported for stand-ins.
import { describe } from "vitest"
import { testImports } from "./flows/imports.ts"
import { basicauth } from "./logins/basicauth.ts"
import { targetUrl } from "./target.ts"

describe.skipIf(targetUrl !== undefined)("an imported subscription", () => testImports(basicauth))
