import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { beforeEach, describe, expect, test } from 'vitest'
import { receiverKinds } from '../../src/core/watch/notify/index.ts'
import { receiverRows } from '../support/notify/receiver-rows.ts'
import { documentOf } from '../support/program/documents.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'

const home: Home = temporaryHome()
const path = join(home.folder, 'svc.yaml')
const before = '# ours\nnotify:\n  - {name: chat, webhook: {url: "http://127.0.0.1:1/"}} # first\n'
const token = 'tk_planted0Zq8nT3abcdefghijklmno'
const gotify = 'Aplanted0Zq8nT3'

beforeEach(() => writeFileSync(path, before, { mode: 0o600 }))

/** A simulated Gotify that accepts, or refuses, and keeps what it got. */
async function server(status = 200) {
  const got: { readonly key: unknown; readonly body: string }[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      got.push({ key: request.headers['x-gotify-key'], body })
      response.writeHead(status).end(status === 200 ? '{"id": 1}' : '{"error": "Unauthorized"}')
    })
  })
  return { got, peer, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
}

describe('svc notify add', () => {
  test('M20 writes the receiver, keeps its secret in a private file, and sends a test', async () => {
    await using at = await server()
    const args = ['notify', 'add', 'gotify', '--name', 'phone', '--set', `server=${at.peer.origin}`, '--stdin']
    const { code, stdout, stderr } = await home.run(args, { stdin: `${gotify}\n` })
    expect([code, stdout]).toEqual([0, `phone is added to ${path}\n`])
    const secret = join(home.folder, 'phone-token.secret')
    expect(readFileSync(path, 'utf8')).toBe(
      `${before}  - name: phone\n    gotify:\n      server: ${at.peer.origin}\n      token:\n        file: phone-token.secret\n`,
    )
    expect([readFileSync(secret, 'utf8'), statSync(secret).mode & 0o777]).toEqual([`${gotify}\n`, 0o600])
    expect(at.got.map(({ key }) => key)).toEqual([gotify])
    expect(at.got[0]?.body).toContain('TEST of svc notify test')
    expect(stderr).toContain('+   - name: phone')
    expect(`${stdout}${stderr}`).not.toContain('Zq8nT3')
  })

  test('M20 takes an answer in the quotes that svc.yaml needs', async () => {
    const args = ['notify', 'add', 'telegram', '--secrets', 'env']
    await home.terminal(args, (screen) => (screen.includes('chat (') ? "'-1001234567890'\r" : undefined))
    expect(readFileSync(path, 'utf8')).toMatch(/ chat: "-1001234567890"\n/)
  })

  test('M20 writes nothing, and keeps no secret, when the service refuses the test', async () => {
    await using at = await server(401)
    const args = ['notify', 'add', 'gotify', '--set', `server=${at.peer.origin}`, '--stdin']
    const { code, stderr } = await home.run(args, { stdin: gotify })
    expect(code).toBe(9)
    expect(stderr).toContain('the test message was refused')
    expect(stderr).toContain('Nothing was written')
    expect(readFileSync(path, 'utf8')).toBe(before)
    expect(existsSync(join(home.folder, 'gotify-token.secret'))).toBe(false)
  })

  test('M20 names a variable and asks for no secret with --secrets env', async () => {
    const args = ['notify', 'add', 'slack', '--secrets', 'env', '--json']
    const { code, stdout, stderr } = await home.run(args)
    expect(code).toBe(0)
    expect(documentOf('notify add', stdout)).toMatchObject({ receivers: [{ receiver: 'slack', file: path }] })
    expect(stderr).toContain('SLACK_URL=…')
    expect(readFileSync(path, 'utf8')).toContain('url:\n        env: SLACK_URL\n')
  })

  test('M20 what is missing without a terminal names the flag, and a secret on the command line is refused', async () => {
    const missing = await home.run(['notify', 'add', 'telegram'])
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('--stdin')])
    const setting = await home.run([
      'notify',
      'add',
      'matrix',
      '--secrets',
      'env',
      '--set',
      'server=https://matrix.example.com',
    ])
    expect([setting.code, setting.stderr]).toEqual([2, expect.stringContaining('--set channel=VALUE')])
    const typed = await home.run(['notify', 'add', 'ntfy', '--set', `token=${token}`])
    expect([typed.code, typed.stderr]).toEqual([2, expect.stringContaining('does not belong on a command line')])
    expect(typed.stderr).not.toContain(token)
    const twice = await home.run(['notify', 'add', 'slack', '--name', 'chat', '--secrets', 'env'])
    expect([twice.code, twice.stderr]).toEqual([9, expect.stringContaining('--name NAME')])
    const unknown = await home.run(['notify', 'add', 'slak', '--secrets', 'env'])
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('slack')])
    expect(readFileSync(path, 'utf8')).toBe(before)
  })
})

describe('svc notify preview', () => {
  const kinds = receiverKinds.map(({ name }) => name).filter((name) => name !== 'exec')

  test.each([
    [['ntfy', '--set', 'topic=planted/7'], '--set topic is invalid: '],
    [['ntfy', '--set', 'topic=a', '--set', 'server=planted7'], '--set server has no scheme (https:// or http://)'],
    [['webhook', '--set', 'url=ftp://planted:7@x/'], '--set url begins with ftp:, but must begin with'],
    [['webhook', '--set', 'url=https://x/planted7', '--set', 'each=planted'], '--set each must be one of'],
    [['email', '--set', 'server=smtp://x', '--set', 'from=a@b.c', '--set', 'to=planted7'], '--set to is invalid: '],
    [['ntfy', '--name', 'planted 7', '--set', 'topic=x'], '--name is invalid: '],
    [['jsm', '--set', 'apiKey=planted7'], '--set apiKey: a secret does not belong on a command line'],
  ])('M20 a mistake in %j names the argument, and repeats no value', async (args, says) => {
    const { code, stdout, stderr } = await home.run(['notify', 'add', ...args, '--secrets', 'env', '--no-test'])
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(`Error: ${says}`)])
    expect(stderr).not.toMatch(/planted|Correct the file/)
    expect(readFileSync(path, 'utf8')).toBe(before)
  })

  test.each(kinds)(
    'M20 shows the messages of %s with each secret as its reference, and sends nothing',
    async (kind) => {
      writeFileSync(path, JSON.stringify({ notify: [{ name: 'ops', kind, ...receiverRows[kind]?.settings }] }))
      for (const flag of ['--fault', '--recovery', '--many']) {
        const { code, stdout, stderr } = await home.run(['notify', 'preview', 'ops', flag, '--json'])
        expect([code, stderr]).toEqual([0, expect.any(String)])
        const [preview] = (
          documentOf('notify preview', stdout) as {
            readonly previews: readonly { readonly requests: readonly string[] }[]
          }
        ).previews
        expect(preview?.requests.length).toBeGreaterThan(0)
        expect(stdout).not.toContain('svc.invalid')
        const references = JSON.stringify(receiverRows[kind]?.settings).match(/(?<="env":")\w+/g) ?? []
        const inOutput = references.filter((name) => stdout.includes(`{env: ${name}}`))
        // A drill has a key of its own, and the password of a mail server is no part of a mail.
        if (kind !== 'email' && references.length > 0) expect(inOutput.length).toBeGreaterThan(0)
      }
    },
  )
})

test('M20 svc notify test says which lines to change when a service refuses', async () => {
  await using at = await server(401)
  writeFileSync(path, `notify:\n  - name: phone\n    gotify: {server: "${at.peer.origin}", token: {env: GOTIFY}}\n`)
  const { code, stderr } = await home.run(['notify', 'test'], { env: { GOTIFY: gotify } })
  expect(code).toBe(9)
  expect(stderr).toContain(`phone is at ${path}:2: correct token, server`)
})
