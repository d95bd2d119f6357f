import type { IncomingMessage, RequestOptions } from 'node:http'
import { filesWithin } from '../../files/index.ts'
import { isLoopback } from '../../loopback.ts'
import { readCaFile } from '../../net/certificates.ts'
import { readJson } from '../../net/json.ts'
import { hostOf } from '../../net/url.ts'

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
  const request: RequestOptions = {
    method: body === undefined ? 'GET' : 'POST',
    host: hostOf(url),
    port: url.port,
    path: `${url.pathname}${url.search}`,
    agent: false,
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
  }
  try {
    const answer = await (url.protocol === 'https:'
      ? send('https', { ...request, ...(await trustOf(caFile)) }, body)
      : send('http', { ...request, lookup: lookupHere }, body))
    const read = readJson(answer.text, deepest)
    if ('problem' in read) throw new ProviderProblem(`${url.origin} answered ${answer.status} without JSON`)
    return { status: answer.status, json: read.json }
  } catch (error) {
    if (error instanceof ProviderProblem) throw error
    const { name, code, message } = error as NodeJS.ErrnoException
    const why =
      name === 'AbortError' || name === 'TimeoutError' ? `no answer within ${maxMs / 1_000} s` : (code ?? message)
    throw new ProviderProblem(`${url.origin}: ${why}`, { cause: error })
  }
}

async function send(
  protocol: 'http' | 'https',
  options: RequestOptions,
  body: string | undefined,
): Promise<{ readonly status: number; readonly text: string }> {
  const sent =
    protocol === 'https'
      ? process.getBuiltinModule('node:https').request(options)
      : process.getBuiltinModule('node:http').request(options)
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  sent.on('error', reject)
  sent.once('response', (answer: IncomingMessage) => {
    const parts: Buffer[] = []
    let length = 0
    answer.on('data', (part: Buffer) => {
      length += part.length
      if (length > maxBytes) return reject(new ProviderProblem(`the answer is larger than ${maxBytes} bytes`))
      parts.push(part)
    })
    answer.on('error', reject)
    answer.once('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString('utf8') }))
  })
  sent.end(body)
  try {
    return await promise
  } finally {
    sent.destroy()
  }
}

async function trustOf(caFile: string | undefined): Promise<{ readonly ca: string[] }> {
  const { getCACertificates } = process.getBuiltinModule('node:tls')
  const own = await readCaFile(caFile, filesWithin(maxMs))
  return { ca: [...getCACertificates('default'), ...getCACertificates('system'), ...(own === undefined ? [] : [own])] }
}

/** For http://localhost: a resolver may map the name to another machine, which must get no secret. */
const lookupHere: NonNullable<RequestOptions['lookup']> = (host, options, callback) => {
  process.getBuiltinModule('node:dns').lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, [])
    const here = addresses.filter(({ address }) => isLoopback(address))
    const [first] = here
    if (!first) return callback(new ProviderProblem(`${host} is not this machine`), [])
    if (options.all) callback(null, here)
    else callback(null, first.address, first.family)
  })
}
