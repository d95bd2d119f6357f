import { addAbortListener } from 'node:events'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Fault } from '../../core/base/errors.ts'
import { fileProblem } from '../../core/base/file-errors.ts'
import { copyOfShare, isOnShare, problemOnShare, readFromShare } from '../../core/base/files/index.ts'
import { sanitizeLine, sanitizeText, withoutCommands } from '../../core/base/sanitize.ts'
import { nearestHint } from '../../core/base/suggest.ts'
import type { RawAnswer, RawRequest } from '../../core/client/index.ts'
import type { InputStream, Io } from '../io/io.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
type Method = (typeof methods)[number]
/** Methods whose input is in the query. A body has no defined meaning for them. */
const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

const usage = (message: string, ...hints: readonly string[]): Fault => new Fault('Usage', message, { hints })

/** The request of an `svc api` command line. Throws `Fault` Usage, or Local for a file that cannot be read. */
export async function apiRequest(
  input: {
    readonly method: string | undefined
    readonly path: string | undefined
    readonly data: string | undefined
    readonly headers: readonly string[]
  },
  stdin: () => Promise<Buffer>,
  signal: AbortSignal,
): Promise<RawRequest> {
  const method = methodOf(input.method, input.path)
  const path = pathOf(input.path, method)
  const headers = input.headers.map(headerOf)
  if (input.data !== undefined && bodiless.has(method)) {
    throw usage(
      `${method} does not accept --data`,
      `Put the parameters into the query: svc api ${method} '/path?name=value'`,
    )
  }
  const body = input.data === undefined ? undefined : await bodyOf(input.data, stdin, signal)
  return { method, path, headers, body }
}

function methodOf(input: string | undefined, path: string | undefined): Method {
  const example = 'For example: svc api GET /auth'
  if (input === undefined) throw usage('METHOD and PATH are missing', example)
  const match = methods.find((method) => method === input.toUpperCase())
  if (match) return match
  if (path === undefined && input.includes('/')) throw usage('METHOD is missing', `svc api GET ${sanitizeLine(input)}`)
  throw usage(
    `unknown METHOD "${sanitizeLine(input)}"`,
    ...nearestHint(input, methods),
    `Methods: ${methods.join(' ')}`,
  )
}

/** A path at the chosen server, and nothing else: the sign-in must not go to another one (K5). */
function pathOf(input: string | undefined, method: Method): string {
  if (input === undefined || input.trim() === '') {
    throw usage(`PATH is ${input === undefined ? 'missing' : 'empty'}`, `For example: svc api ${method} /auth`)
  }
  if (/^[a-z][a-z\d+.-]*:/i.test(input) || /^[/\\]{2}/.test(input)) {
    const url = URL.parse(input)
    const elsewhere = url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
    throw usage(
      'PATH must be a path, not a URL: the request carries your sign-in, so it goes only to the selected server',
      ...(elsewhere
        ? [`svc api ${method} '${sanitizeLine(url.pathname + url.search)}' --server ${sanitizeLine(url.origin)}`]
        : ['Start it with one slash, or without a slash in shells that rewrite paths (Git Bash).']),
    )
  }
  if (input.includes('#'))
    throw usage('PATH must end before any #', 'What follows a # is never sent; write %23 for it.')
  const slashed = input.startsWith('/') ? input : `/${input}`
  const [path = ''] = slashed.split('?', 1)
  if (path.split(/\/|\\|%2f|%5c/i).some((part) => /^(?:\.|%2e){1,2}$/i.test(part))) {
    throw usage('PATH must not contain . or .. segments: they could leave the base URL of the server')
  }
  // Existing escapes stay; characters that no request line can contain are encoded.
  return slashed.toWellFormed().replace(/[^!$&-;=?-Z_a-z~[\]%]/gu, (letter) => encodeURIComponent(letter))
}

/**
 * Headers that the command line may not set: others could read credentials in the process list, and svc sets the
 * framing itself.
 */
const credentials = /^(?:authorization|proxy-authorization|cookie2?|x-ss-.*|x-api-?key|x-auth-token|.*authsecret)$/i
const framing =
  /^(?:host|content-length|transfer-encoding|connection|keep-alive|proxy-connection|upgrade|te|trailer|expect)$/i

function headerOf(input: string): readonly [string, string] {
  const name = /^[!#$%&'*+.^`|~\w-]+(?=:)/.exec(input)?.[0] ?? ''
  // Blanks and tabs around a value do not belong to it (RFC 9110, 5.5). Anything else does, and is checked below.
  const value = input.slice(name.length + 1).replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, '')
  if (name === '') {
    throw usage('invalid --header', "A name, a colon and a value: --header 'Accept: text/csv'")
  }
  if (credentials.test(name)) {
    throw usage(
      `--header ${name} is refused: other users can read command lines, and svc sends the credentials itself`,
      'Sign in with svc login, or set SVC_TOKEN.',
    )
  }
  if (framing.test(name)) throw usage(`--header ${name} is refused: svc sets this transport header itself`)
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    throw usage(`--header ${name} contains a line break or characters that are invalid in a header`)
  }
  return [name, value]
}

/** Bytes: sixteen times what a server accepts by default. */
const maxData = 16 * 1024 * 1024

async function bodyOf(data: string, stdin: () => Promise<Buffer>, signal: AbortSignal): Promise<Buffer> {
  if (!data.startsWith('@')) return Buffer.from(data)
  if (data === '@-') return await stdin()
  const path = data.slice(1)
  const local = (what: string): Fault =>
    new Fault('Local', `--data ${data} ${what}`, { hints: ['@FILE sends the bytes of a file, @- standard input.'] })
  if (path === '') throw usage('--data @ requires a file name', '@FILE sends the bytes of a file, @- standard input.')
  if (isOnShare(path)) {
    return await readFromShare(path, maxData, signal).catch((error: unknown) => {
      signal.throwIfAborted()
      throw new Fault('Local', `--data ${data} ${problemOnShare(error)}`, { hints: [copyOfShare] })
    })
  }
  try {
    if ((await stat(path)).isDirectory()) throw local('is a folder')
    // Counted while reading, because a pipe or a device has no size.
    const bytes = await readBounded(createReadStream(path))
    if (bytes === undefined) throw local(`is larger than ${maxData / 1024 / 1024} MiB`)
    return bytes
  } catch (error) {
    if (error instanceof Fault) throw error
    throw local(fileProblem(error))
  }
}

/** Reads all of standard input, unchanged. */
export async function dataFromStdin(stdin: InputStream, signal: AbortSignal): Promise<Buffer> {
  if (stdin.isTTY) {
    throw usage(
      '--data @- requires a pipe or file, but standard input is a terminal',
      'svc api POST /path --data @- < FILE',
    )
  }
  const stop = (): void => void stdin.stream.destroy()
  using _listener = addAbortListener(signal, stop)
  const bytes = await readBounded(stdin.stream)
  signal.throwIfAborted()
  if (bytes === undefined) throw usage(`--data @-: more than ${maxData / 1024 / 1024} MiB of input`)
  return bytes
}

/** Reads everything, or returns undefined for more than the limit. */
async function readBounded(from: AsyncIterable<Buffer>): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of from) {
    chunks.push(chunk)
    size += chunk.length
    if (size > maxData) return undefined
  }
  return Buffer.concat(chunks)
}

/** The bytes to write for a response, and a note for stderr. */
export type DisplayedBody = { readonly bytes: Buffer; readonly note: string | undefined }

/**
 * A file gets the server's bytes unchanged (C3), and so does a pipe except for what a CI runner would obey in text. A
 * terminal would also obey control sequences, so it gets text without them, and no binary data. Neither does the log of a
 * runner, where commands may stand between any bytes.
 */
export function showAnswer(
  answer: RawAnswer,
  { include, stdout, env }: { readonly include: boolean } & Pick<Io, 'stdout' | 'env'>,
): DisplayedBody {
  const head = include ? headOf(answer) : ''
  const text = textOf(answer.bytes)
  const isLog = stdout.isTTY || runnerVariables.some((name) => env[name])
  if (stdout.isFile || (!isLog && text === undefined)) {
    return { bytes: Buffer.concat([Buffer.from(head, 'latin1'), answer.bytes]), note: undefined }
  }
  if (!stdout.isTTY && text !== undefined) {
    const bytes = [withoutCommands(head, 'text'), withoutBodyCommands(answer.bytes.toString('latin1'))]
    return { bytes: Buffer.from(bytes.join(''), 'latin1'), note: undefined }
  }
  const lines = withoutCommands(head.trimEnd().split('\r\n').map(sanitizeLine).join('\n'), 'text')
  const shownHead = head === '' ? '' : `${lines}\n\n`
  if (text === undefined) {
    const size = `${answer.bytes.length} bytes${answer.contentType === '' ? '' : ` of ${sanitizeLine(answer.contentType)}`}`
    return {
      bytes: Buffer.from(shownHead),
      note: `${size} not shown, because the content is not text: svc api … > FILE`,
    }
  }
  const safe = withoutBodyCommands(sanitizeText(text))
  return { bytes: Buffer.from(`${shownHead}${safe}${safe === '' || safe.endsWith('\n') ? '' : '\n'}`), note: undefined }
}

/** Variables of known CI runners. */
const runnerVariables = ['CI', 'GITHUB_ACTIONS', 'TF_BUILD', 'TEAMCITY_VERSION', 'GITLAB_CI'] as const

/** A body without commands: by the escape of JSON if it is JSON. Sections of GitLab need a control sequence. */
function withoutBodyCommands(body: string): string {
  const broken = withoutCommands(body, 'records').replace(/\r(?=\x1b\[0K)/g, '')
  if (broken === body) return body
  try {
    JSON.parse(body)
    return withoutCommands(body, 'json')
  } catch {
    return broken
  }
}

/** The status line and the headers, with the values of cookies redacted: a cookie is as good as a password. */
function headOf({ status, reason, rawHeaders }: RawAnswer): string {
  const lines = [`HTTP/1.1 ${status}${reason === '' ? '' : ` ${reason}`}`]
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    const cookie = /^set-cookie2?$/i.test(name)
    lines.push(`${name}: ${cookie ? value.replace(/^([^=;]*=)?[^;]*/, '$1***') : value}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n`
}

function textOf(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
