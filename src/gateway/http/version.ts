// The versions that responses name. Clients are written for them, so no deployment differs by them.
import packageJson from "../../../package.json" with { type: "json" }

/** The version of this program. */
export const projectVersion = packageJson.version

/** The version of the HTTP contract: MAJOR.MINOR. */
export const httpApiVersion = "1.0"

/** The first segment of every path: the major part of the contract's version (section 1.1). */
export const versionPrefix = "v1"
