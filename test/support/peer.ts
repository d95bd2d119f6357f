import { describe, expect, test } from 'vitest'

/** What no installation brings: whoever tests as an ordinary account is told, and not failed. */
const beyondInstalling = /\bneeds? root\b/

/**
 * A suite that needs a program of the operating system. Where it is absent the suite is skipped and
 * says so; with SVC_TEST_REQUIRE=all it fails instead.
 */
export function suiteWith(missing: string | undefined, name: string, body: () => void): void {
  if (missing === undefined) return void describe(name, body)
  if (process.env.SVC_TEST_REQUIRE === 'all' && !beyondInstalling.test(missing))
    return void test(name, () => expect.fail(missing))
  process.stderr.write(`skipped: ${name}: ${missing}\n`)
  describe.runIf(false)(`${name} (skipped: ${missing})`, body)
}
