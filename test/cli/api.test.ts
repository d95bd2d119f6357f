import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { commandsIn, harmless } from '../support/hostile/runners.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { password, signInServer, user } from '../support/simulated/sign-in-server.ts'
import { suiteWith } from '../support/suite/peer.ts'

type RecordedRequest = { readonly line: string; readonly headers: IncomingMessage['headers']; readonly body: Buffer }
type Reply = (asked: RecordedRequest, response: ServerResponse) => void

/** A server that answers as configured and records its requests. */
async function serverThat(reply: Reply) {
  const requests: RecordedRequest[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const one = { line: `${request.method} ${request.url}`, headers: request.headers, body: Buffer.concat(chunks) }
    requests.push(one)
    reply(one, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: requests }
}
const json = { 'content-type': 'application/json; charset=utf-8' }
const fine: Reply = (_, response) => void response.writeHead(200, json).end('{"fine":true}')
const answering =
  (status: number, body: string, headers: Record<string, string> = json): Reply =>
  (_, response) =>
    void response.writeHead(status, headers).end(body)

/** The bytes that svc writes to a pipe. */
async function bytesOf(at: Home, args: readonly string[]): Promise<Buffer> {
  const entry = new URL('../../bin/run.js', import.meta.url).pathname
  const child = spawn(process.execPath, [entry, ...args], { env: at.env, stdio: ['ignore', 'pipe', 'ignore'] })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(child, 'close')
  return Buffer.concat(chunks)
}

describe('svc api', () => {
  test('C3 svc api prints the bytes of the server unchanged', async () => {
    const hostile = Buffer.concat([
      Buffer.from([0, 0xff, 0xfe, 0x80]),
      Buffer.from('\x1b[2J\r\nPascal \\/Date(1)\\/'),
      Buffer.from(Array.from({ length: 200_000 }, (_, at) => at % 256)),
    ])
    const server = await serverThat((_, response) => {
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(hostile)
    })
    const got = await bytesOf(temporaryHome(), ['api', 'GET', '/blob', '--server', server.url])
    expect(got.equals(hostile)).toBe(true)
  })

  test('K6 svc api prints no command of a CI runner, except into a file', async () => {
    const json = JSON.stringify({ text: harmless })
    const section = 'section_start:1:a\r\x1b[0K'
    const server = await serverThat(({ line }, response) => {
      const body = line.includes('/json') ? json : line.includes('/bin') ? `\0${harmless}` : `${harmless}\n${section}`
      response.writeHead(200, { 'content-type': 'text/plain', 'x-text': harmless }).end(body)
    })
    const get = (path: string, more: Parameters<Home['run']>[1] = {}, ...flags: readonly string[]) =>
      temporaryHome().run(['api', 'GET', path, '--server', server.url, ...flags], more)
    const text = await get('/text', {}, '--include')
    expect(text.stdout).toContain('hello')
    expect(commandsIn(text.stdout)).toEqual([])
    const document = await get('/json')
    expect(commandsIn(document.stdout)).toEqual([])
    expect(JSON.parse(document.stdout)).toEqual({ text: harmless })
    expect((await get('/text', { file: true })).stdout).toBe(`${harmless}\n${section}`)
    expect((await get('/bin')).stdout).toBe(`\0${harmless}`)
    const inJob = await get('/bin', { env: { TF_BUILD: 'True' } })
    expect(commandsIn(inJob.stdout + inJob.stderr)).toEqual([])
    expect(inJob.stderr).toContain('svc api … > FILE')
  })

  test('C1 it requests JSON, sends JSON and always sends a length', async () => {
    const server = await serverThat(fine)
    const at = temporaryHome()
    writeFileSync(join(at.folder, 'body.bin'), Buffer.from([0, 1, 0xff]))
    const api = (args: readonly string[], stdin = '') =>
      at.run(['api', ...args, '--server', `${server.url}/ops/`], { stdin })
    expect(await api(['get', '/auth?x=a b&y=ü'])).toEqual({ code: 0, stdout: '{"fine":true}', stderr: '' })
    await api(['POST', 'nothing'])
    await api(['POST', '/text', '--data', '{"UserName":"zoë"}'])
    await api(['PUT', '/file', '-d', `@${join(at.folder, 'body.bin')}`, '-H', 'content-TYPE: image/x'])
    await api(['PATCH', '/stdin', '--data', '@-', '--header', 'Accept: text/csv'], 'a\r\nb\n')
    await api(['DELETE', '/auth'])
    await api(['DELETE', '/auth', '--data', '{}'])
    const records = server.requests.map(({ line, headers, body }) => [
      line,
      headers.accept,
      headers['content-type'],
      headers['content-length'],
      body.toString('latin1'),
    ])
    expect(records).toEqual([
      ['GET /ops/auth?x=a%20b&y=%C3%BC', 'application/json', undefined, undefined, ''],
      ['POST /ops/nothing', 'application/json', undefined, '0', ''],
      [
        'POST /ops/text',
        'application/json',
        'application/json',
        '19',
        Buffer.from('{"UserName":"zoë"}').toString('latin1'),
      ],
      ['PUT /ops/file', 'application/json', 'image/x', '3', '\x00\x01\xff'],
      ['PATCH /ops/stdin', 'text/csv', 'application/json', '5', 'a\r\nb\n'],
      ['DELETE /ops/auth', 'application/json', undefined, undefined, ''],
      ['DELETE /ops/auth', 'application/json', 'application/json', '2', '{}'],
    ])
    expect(server.requests.every(({ headers }) => /^svc\//.test(headers['user-agent'] ?? ''))).toBe(true)
  })

  test.each([
    [200, '{}', 0, /^$/],
    [204, '', 0, /^$/],
    [400, '{"ResponseStatus":{"ErrorCode":"X","Message":"not so"}}', 9, /rejects the request \(400\): not so/],
    [401, '', 4, /requires sign-in \(401\)\n.*svc login --server/s],
    [403, '{"responseStatus":{"message":"Invalid Role"}}', 5, /denies permission \(403\): Invalid Role/],
    [404, '404', 9, /could not find this \(404\): 404/],
    [405, '<html>no</html>', 9, /does not allow this method \(405\)/],
    [409, '{"ResponseStatus":{"Message":"the last Admin"}}', 9, /reports a conflict \(409\): the last Admin/],
    [429, '', 8, /reports too many requests \(429\)/],
    [500, 'boom', 8, /failed \(500\): boom/],
    [503, '{"Status":"Failure"}', 8, /is unavailable \(503\)/],
  ])('status %i: the body on stdout, the error on stderr, the usual exit code', async (status, body, code, text) => {
    const server = await serverThat(answering(status, body))
    const ran = await temporaryHome().run(['api', 'GET', '/x', '--server', server.url])
    expect([ran.code, ran.stdout]).toEqual([code, body])
    expect(ran.stderr).toMatch(text)
  })

  test('K5 it presents the sign-in of its server, renews it once and repeats the request', async () => {
    const server = await signInServer({ dialect: 'rotating' })
    const elsewhere = await serverThat(fine)
    const at = temporaryHome()
    onTestFinished(server.close)
    const login = ['login', '--server', server.url, '-u', user, '--password-stdin', '--insecure-storage']
    expect((await at.run(login, { stdin: password })).code).toBe(0)
    server.expire()
    const ran = await at.run(['api', 'GET', '/auth'])
    expect([ran.code, JSON.parse(ran.stdout)]).toMatchObject([0, { UserName: user }])
    expect(server.rotations()).toBe(1)
    // Kept: the next one needs no renewal.
    expect((await at.run(['api', 'POST', '/assignroles', '--data', '{"UserName":"bob"}'])).code).toBe(0)
    expect(server.rotations()).toBe(1)
    await at.run(['api', 'GET', '/auth', '--server', elsewhere.url])
    expect(elsewhere.requests[0]?.headers).not.toHaveProperty('authorization')
  })

  test('C5 a wrong password in a body is sent once and renews nothing', async () => {
    const server = await signInServer({ dialect: 'rotating' })
    const at = temporaryHome()
    onTestFinished(server.close)
    await at.run(['login', '--server', server.url, '-u', user, '--password-stdin', '--insecure-storage'], {
      stdin: password,
    })
    const before = server.requests.length
    const body = '{"UserName":"alice","Password":"wrong"}'
    const ran = await at.run(['api', 'POST', '/auth/credentials', '--data', '@-'], { stdin: body })
    expect(ran.code).toBe(4)
    expect(ran.stdout).toContain('Invalid Username or Password')
    expect(server.requests.slice(before).map(({ path }) => path)).toEqual(['/auth/credentials'])
    expect(server.rotations()).toBe(0)
  })

  test('C5 a sign-in that can no longer be renewed: the 401 on stdout, the remedy on stderr', async () => {
    const server = await signInServer({ dialect: 'rotating' })
    const at = temporaryHome()
    onTestFinished(server.close)
    await at.run(['login', '--server', server.url, '-u', user, '--password-stdin', '--insecure-storage'], {
      stdin: password,
    })
    server.forget()
    const ran = await at.run(['api', 'GET', '/auth'])
    expect([ran.code, ran.stdout]).toMatchObject([4, expect.stringContaining('Not Authenticated')])
    expect(ran.stderr).toContain(`svc login --server ${server.url} -u ${user}`)
    const withVariable = await at.run(['api', 'GET', '/auth', '--server', server.url], {
      env: { SVC_TOKEN: 'svct_no-good-0001' },
    })
    expect(withVariable.code).toBe(4)
    expect(withVariable.stderr).toContain('SVC_TOKEN')
    expect(withVariable.stdout + withVariable.stderr).not.toContain('no-good-0001')
  })

  test.each([
    [['GET', 'https://elsewhere.example/auth?x=1'], "svc api GET '/auth?x=1' --server https://elsewhere.example"],
    [['GET', '//elsewhere.example/auth'], 'PATH must be a path'],
    [['GET', '/\\elsewhere.example/auth'], 'PATH must be a path'],
    [['GET', 'javascript:alert(1)'], 'PATH must be a path'],
    [['GET', '/../auth'], 'must not contain . or ..'],
    [['GET', '/a/%2E%2e/auth'], 'must not contain . or ..'],
    [['GET', '/a%2f..%2fauth'], 'must not contain . or ..'],
    [['GET', '/a#b'], 'before any #'],
    [['GET', ''], 'PATH is empty'],
    [['GET'], 'PATH is missing'],
    [[], 'METHOD and PATH are missing'],
    [['/auth'], 'svc api GET /auth'],
    [['PSOT', '/auth'], 'Did you mean POST'],
    [['TRACE', '/auth'], 'unknown METHOD'],
    [['GET', '/x', '--data', '{}'], 'GET does not accept --data'],
    [['POST', '/x', '--data', ''], '--data is empty'],
    [['POST', '/x', '--header', 'Authorization: Bearer abc123secret'], '--header Authorization is refused'],
    [['POST', '/x', '-H', 'cookie: ss-id=abc123secret'], '--header cookie is refused'],
    [['POST', '/x', '-H', 'X-ss-pid: abc123secret'], '--header X-ss-pid is refused'],
    [['POST', '/x', '-H', 'X-Param-Override-authsecret: abc123secret'], 'is refused'],
    [['POST', '/x', '-H', 'Host: elsewhere.example'], '--header Host is refused'],
    [['POST', '/x', '-H', 'Transfer-Encoding: chunked'], 'is refused'],
    [['POST', '/x', '-H', 'X-A: b\r\nAuthorization: abc123secret'], 'line break'],
    [['POST', '/x', '-H', 'nothing'], 'invalid --header'],
  ])('K5 refused with exit 2 before anything is sent: %j', async (args, text) => {
    const server = await serverThat(fine)
    const ran = await temporaryHome().run(['api', ...args], { env: { SVC_SERVER: server.url } })
    expect(ran.code).toBe(2)
    expect(ran.stderr).toContain(text)
    expect(ran.stderr).not.toContain('abc123secret')
    expect(server.requests).toEqual([])
  })

  test.skipIf('a pipe that holds more than 16 MiB is refused, as a file is')(
    'a pipe that holds more than 16 MiB is refused as a file is',
    async () => {
      const server = await serverThat(fine)
      const at = temporaryHome()
      const pipe = join(at.folder, 'pipe')
      execFileSync('mkfifo', [pipe])
      const send = async (bytes: number) => {
        const writer = spawn('sh', ['-c', 'head -c "$1" /dev/zero > "$2"', 'sh', String(bytes), pipe], {
          stdio: 'ignore',
        })
        const ran = await at.run(['api', 'POST', '/x', '--data', `@${pipe}`, '--server', server.url])
        writer.kill()
        return ran
      }
      const large = await send(17 * 1024 * 1024)
      expect([large.code, large.stdout]).toEqual([12, ''])
      expect(large.stderr).toContain(`--data @${pipe} is larger than 16 MiB`)
      expect(server.requests).toEqual([])
      expect((await send(3)).code).toBe(0)
      expect(server.requests.map(({ body }) => body.length)).toEqual([3])
    },
  )

  test('a body that cannot be read is reported before anything is sent', async () => {
    const server = await serverThat(fine)
    const ran = await temporaryHome().run(['api', 'POST', '/x', '--data', '@/nowhere/at all', '--server', server.url])
    expect([ran.code, ran.stdout]).toEqual([12, ''])
    expect(ran.stderr).toContain('--data @/nowhere/at all does not exist')
    expect(server.requests).toEqual([])
  })

  test('K5 a GET follows a redirect within the server without the credential, and a POST follows none', async () => {
    const server = await serverThat(({ line }, response) => {
      if (line.endsWith('/there')) response.end('arrived')
      else response.writeHead(307, { location: '/there', 'set-cookie': 'ss-id=verysecret; Path=/' }).end('moved')
    })
    const env = { SVC_TOKEN: 'svct_given-for-this-0001', SVC_SERVER: server.url }
    const followed = await temporaryHome().run(['api', 'GET', '/here'], { env })
    expect([followed.code, followed.stdout]).toEqual([0, 'arrived'])
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer svct_given-for-this-0001',
      undefined,
    ])
    const posted = await temporaryHome().run(['api', 'POST', '/here', '--data', '{}', '--include'], { env })
    expect(posted.code).toBe(8)
    expect(posted.stdout).toMatch(/^HTTP\/1\.1 307 Temporary Redirect\r\nlocation: \/there\r\n/)
    expect(posted.stdout).toMatch(/\r\n\r\nmoved$/)
    expect(posted.stderr).toMatch(/redirects to .*\/there \(307\), which svc does not follow/)
    expect(server.requests.map(({ line }) => line)).toEqual(['GET /here', 'GET /there', 'POST /here'])
  })

  test('--include prints the status line and the headers, without the values of cookies', async () => {
    // A browser keeps it, and sends it back.
    const nameless = ['Set-Cookie', 'verysecret']
    const server = await serverThat((_, response) => {
      response.writeHead(404, 'Not There', [
        'X-One',
        '1',
        'Set-Cookie',
        'ss-tok=verysecret;Path=/',
        'X-one',
        '2',
        ...nameless,
      ])
      response.end('404')
    })
    const ran = await temporaryHome().run(['api', 'GET', '/x', '-i', '--server', server.url])
    expect(ran.stdout).toMatch(
      /^HTTP\/1\.1 404 Not There\r\nX-One: 1\r\nSet-Cookie: ss-tok=\*\*\*;Path=\/\r\nX-one: 2\r\nSet-Cookie: \*\*\*\r\n(?:.*\r\n)*\r\n404$/,
    )
    expect(ran.stdout).not.toContain('verysecret')
  })

  test('HEAD and OPTIONS print headers alone', async () => {
    const server = await serverThat((_, response) => void response.writeHead(200, { allow: 'GET, HEAD' }).end())
    for (const method of ['HEAD', 'OPTIONS']) {
      const ran = await temporaryHome().run(['api', method, '/auth', '--include', '--server', server.url])
      expect([ran.code, ran.stdout.split('\r\n').slice(0, 2)]).toEqual([0, ['HTTP/1.1 200 OK', 'allow: GET, HEAD']])
    }
  })

  test('with --json an error without an answer is one JSON value, and an answer is unchanged', async () => {
    const at = temporaryHome()
    const unreachable = await at.run(['api', 'GET', '/x', '--json', '--server', 'http://127.0.0.1:1'])
    expect(unreachable.code).toBe(6)
    expect(JSON.parse(unreachable.stdout)).toMatchObject({ error: { exitCode: 6, target: 'http://127.0.0.1:1' } })
    const empty = await serverThat(answering(401, ''))
    const nothing = await at.run(['api', 'GET', '/x', '--json', '--server', empty.url])
    expect([nothing.code, JSON.parse(nothing.stdout)]).toMatchObject([4, { error: { exitCode: 4 } }])
    const server = await serverThat(answering(404, '{"a":1}'))
    const answered = await at.run(['api', 'GET', '/x', '--json', '--server', server.url])
    expect([answered.code, answered.stdout]).toEqual([9, '{"a":1}'])
  })

  test('a server that does not answer in time is exit 7', async () => {
    const server = await serverThat(() => {})
    const ran = await temporaryHome().run(['api', 'GET', '/x', '--timeout', '300ms', '--server', server.url])
    expect(ran.code).toBe(7)
    expect(ran.stderr).toContain('No answer within 0.3 s')
  })

  test('without a server it explains the commands for this machine, and how to name a server', async () => {
    const ran = await temporaryHome().run(['api', 'GET', '/auth'])
    expect(ran.code).toBe(2)
    expect(ran.stderr).toMatch(/no server is selected: .*\n(?:.*\n)*.*svc serve.*\n.*--server https:/)
  })
})

const missing = spawnSync('script', ['--version']).status === 0 ? undefined : 'script'
suiteWith(missing, 'svc api on a terminal', () => {
  const nothing = (): undefined => undefined

  test('K6 a terminal gets text without escapes', async () => {
    const server = await serverThat(
      answering(200, '{"a":"\x1b[31mred\x1b]0;title\x07\u202e \x9b2J"}', {
        'content-type': 'text/plain',
        'x-evil': '\x9b2Jx',
      }),
    )
    const ran = await temporaryHome().terminal(['api', 'GET', '/x', '-i', '--server', server.url], nothing)
    expect(ran.code).toBe(0)
    expect(ran.stdout).toContain('{"a":"red "}\r\n')
    expect(ran.stdout).toContain('HTTP/1.1 200 OK\r\n')
    expect(ran.stdout).not.toMatch(/[\x1b\x07\x9b\u202e]|title/)
  })

  test('K6 a terminal gets no binary body, only the way to save it', async () => {
    const server = await serverThat((_, response) => {
      response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from([0x89, 0x50, 0, 0x1b, 0x5b]))
    })
    const ran = await temporaryHome().terminal(['api', 'GET', '/x', '--server', server.url], nothing)
    expect(ran.code).toBe(0)
    expect(ran.stdout.replace(/\r?\n/g, ' ')).toContain(
      '5 bytes of image/png not shown, because the content is not text: svc api … > FILE',
    )
    expect(ran.stdout).not.toMatch(/\x1b|PNG|P\x00/)
  })
})
