// Every policy but token and basicauth, which the other files of this folder's parent use.
import { introspection, openid, signed, verifyCall } from "./bearer.ts"
import type { Login } from "./login.ts"
import { ownModule } from "./own-module.ts"
import { portier } from "./portier.ts"
import { proxy } from "./proxy.ts"

export const logins: ReadonlyArray<Login> = [
  openid,
  portier,
  introspection,
  verifyCall,
  signed,
  ownModule,
  // The last: where all are on, it knows every request.
  proxy
]
