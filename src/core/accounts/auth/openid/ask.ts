import type { LookupFunction } from 'node:net'
import { filesWithin } from '../../../base/files/index.ts'
import { isLoopback } from '../../../base/loopback.ts'
import { readCaFile } from '../../../base/net/certificates.ts'
import { sendBounded } from '../../../base/net/http/get.ts'
import { readJson } from '../../../base/net/json.ts'

/** Maximum bytes of an answer. A hundred keys with certificates have a few hundred thousand. */
const maxBytes = 512 * 1024
/** Milliseconds from the connection to the end of the answer. */
const maxMs = 5_000
const deepest = 32

/** The provider did not answer in a usable way. The message is for operators, not for callers. */
export class ProviderProblem extends Error {}

export type ProviderRequest = {
  readonly form?: URLSearchParams | undefined
  readonly authorization?: string | undefined
  readonly caFile?: string | undefined
}

/**
 * Sends one GET, or a POST with a form, to a URL of the configured provider. Follows no redirect and keeps no connection.
 * Throws ProviderProblem when no JSON document arrives in time.
 */
export async function ask(
  url: URL,
  { form, authorization, caFile }: ProviderRequest = {},
): Promise<{
  readonly status: number
  readonly json: unknown
}> {
  const body = form?.toString()
  const isSecure = url.protocol === 'https:'
  try {
    const { status, bytes } = await sendBounded(url, {
      method: body === undefined ? 'GET' : 'POST',
      signal: AbortSignal.timeout(maxMs),
      headers: {
        Accept: 'application/json',
        'User-Agent': 'svc',
        Connection: 'close',
        ...(authorization === undefined ? {} : { Authorization: authorization }),
        ...(body === undefined
          ? {}
          : { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': Buffer.byteLength(body) }),
      },
      ...(isSecure ? await trustOf(caFile) : { lookup: lookupHere }),
      body,
      maxBytes,
      tooLarge: () => new ProviderProblem(`the answer is larger than ${maxBytes} bytes`),
    })
    const read = readJson(bytes.toString('utf8'), deepest)
    if ('problem' in read) throw new ProviderProblem(`${url.origin} answered ${status} without JSON`)
    return { status, json: read.json }
  } catch (error) {
    if (error instanceof ProviderProblem) throw error
    const { name, code, message } = error as NodeJS.ErrnoException
    const why =
      name === 'AbortError' || name === 'TimeoutError' ? `no answer within ${maxMs / 1_000} s` : (code ?? message)
    throw new ProviderProblem(`${url.origin}: ${why}`, { cause: error })
  }
}

async function trustOf(caFile: string | undefined): Promise<{ readonly ca: string[] }> {
  const { getCACertificates } = process.getBuiltinModule('node:tls')
  const own = await readCaFile(caFile, filesWithin(maxMs))
  return { ca: [...getCACertificates('default'), ...getCACertificates('system'), ...(own === undefined ? [] : [own])] }
}

/** For http://localhost: a resolver may map the name to another machine, which must get no secret. */
const lookupHere: LookupFunction = (host, options, callback) => {
  process.getBuiltinModule('node:dns').lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, [])
    const here = addresses.filter(({ address }) => isLoopback(address))
    const [first] = here
    if (!first) return callback(new ProviderProblem(`${host} is not this machine`), [])
    if (options.all) callback(null, here)
    else callback(null, first.address, first.family)
  })
}
