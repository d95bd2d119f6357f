import { describe, expect, test } from 'vitest'

/** The requirements that no package of the operating system contains: they get a note, and not a failure. */
const beyondInstalling = /\bneeds? root\b|\bMaven Central\b|\bpackage index\b|\bGo module\b/

/**
 * A suite that needs a program which many machines have: openssl, PostgreSQL from npm, root. Where it is absent the
 * suite is skipped and says so; with SVC_TEST_REQUIRE=all it fails instead.
 */
export function suiteWith(missing: string | undefined, name: string, body: () => void): void {
  if (missing === undefined) return void describe(name, body)
  if (process.env.SVC_TEST_REQUIRE === 'all' && !beyondInstalling.test(missing))
    return void test(name, () => expect.fail(missing))
  process.stderr.write(`skipped: ${name}: ${missing}\n`)
  describe.runIf(false)(`${name} (skipped: ${missing})`, body)
}

/**
 * A suite that needs a server or a program to be installed, from the operating system's packages or elsewhere. It
 * belongs into a file whose name ends in `.peers.test.ts`: `npm run test:peers` runs it, `npm test` does not.
 */
export function peerSuite(missing: string | undefined, name: string, body: () => void): void {
  if (expect.getState().testPath?.endsWith('.peers.test.ts') !== true)
    throw new Error(`"${name}" needs an installed program: it belongs into a .peers.test.ts file`)
  suiteWith(missing, name, body)
}
