import { flushStandardStreams, outputUsed, writeError } from './standard-streams.ts'

/** Milliseconds until the process ends whatever the report of its last error waits for. */
const maxReportMs = 5_000
/** Milliseconds for what was written to standard output and standard error. */
const maxFlushMs = 1_000

type Report = (error: unknown) => Promise<void>

let report: Report | undefined

/**
 * Ends the process when nobody catches an exception or handles a rejection: what holds then is
 * unknown. Node would print the source line with it, which is all of a bundle.
 */
export function endOnUncaught(argv: readonly string[]): void {
  let ending = false
  process.on('uncaughtException', (error) => {
    if (ending) return
    ending = true
    process.exitCode = 1
    // Whatever is still open must not keep the process: nothing but an exit ends it for sure.
    setTimeout(() => process.exit(), maxReportMs)
    void (report ?? say(argv))(error)
      // Parts of the program are missing, for instance.
      .catch(() => writeError(`Error: svc failed unexpectedly: ${JSON.stringify(String(error))}\n`))
      .then(() => flushStandardStreams(maxFlushMs))
      .then(() => process.exit())
  })
}

/** Lets a long-running command report such an error in its own way; the function it gives takes that back. */
export function reportUncaught(how: Report): () => void {
  report = how
  return () => {
    report = undefined
  }
}

const say =
  (argv: readonly string[]): Report =>
  async (error) => {
    const { settle } = await import('./exit.ts')
    // Standard output holds one JSON value: an answer that is there already stays the only one.
    await settle(error, { json: argv.includes('--json') && !outputUsed(), debug: argv.includes('--debug') })
  }
