import { describe, expect, test } from 'vitest'

/** What no package of the operating system brings: it gets a note, and not a failure. */
const beyondInstalling = /\bneeds? root\b|\bMaven Central\b|\bpackage index\b/

/**
 * A suite that needs a program which many machines have: openssl, PostgreSQL from npm, root. Where it is absent the
 * suite is skipped and says so; with SVC_TEST_REQUIRE=all it fails instead.
 */
export function suiteWith(missing: string | undefined, name: string, body: () => void): void {
  suite(missing, name, {}, body)
}

/**
 * A suite that needs a server or a program to be installed from the operating system's packages: `npm run test:peers`
 * runs it, `npm test` does not.
 */
export function peerSuite(missing: string | undefined, name: string, body: () => void): void {
  suite(missing, name, { tags: ['peers'] }, body)
}

function suite(
  missing: string | undefined,
  name: string,
  options: { readonly tags?: string[] },
  body: () => void,
): void {
  if (missing === undefined) return void describe(name, options, body)
  if (process.env.SVC_TEST_REQUIRE === 'all' && !beyondInstalling.test(missing))
    return void test(name, options, () => expect.fail(missing))
  process.stderr.write(`skipped: ${name}: ${missing}\n`)
  describe.runIf(false)(`${name} (skipped: ${missing})`, options, body)
}
