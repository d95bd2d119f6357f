import {
  appendFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { AuditStream } from '../../src/core/service/accounts/audit-stream.ts'
import { verifyLines } from '../../src/core/store/audit/index.ts'
import { refusalsKeptMs } from '../../src/core/store/audit-events.ts'
import { openData } from '../../src/core/store/index.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { adminOver } from '../support/store/admin.ts'
import { actor, newUser } from '../support/store/data-fixture.ts'
import { farMs, until } from '../support/suite/until.ts'

const password = 'violet-harbour-42'
const by = { who: 'local:tester', correlationId: 'test' }

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-stream-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

type Line = { readonly id?: number; readonly seal?: number; readonly event?: string; readonly target?: string }
const file = () => join(folder, 'audit.jsonl')
const lines = (path = file()): readonly Line[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => parsed(line) ?? [])

function parsed(line: string): Line | undefined {
  try {
    return JSON.parse(line) as Line
  } catch {
    return undefined
  }
}

/** A server of this process with a stream, and the Admin Ann, who is signed in. */
async function serving({ stream = file() }: { readonly stream?: string } = {}) {
  const log: string[] = []
  writeFileSync(join(folder, 'svc.yaml'), `serve: {audit: {stream: ${stream}}}\n`, { mode: 0o600 })
  const store = join(folder, 'store', 'svc.db')
  const { service, runtime } = await testCore({
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store,
    details: 'anyone',
    log: ({ level, msg }) => log.push(`${level}: ${msg}`),
  })
  try {
    await adminOver(service).users.add({ userName: 'Ann', password, roles: ['Admin'] }, by)
  } catch {
    // She is there after a restart.
  }
  const server = await testServer({ service, runtime })
  const post = async (path: string, body: object, token?: string) => {
    const response = await fetch(new URL(path, server.url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const signIn = () => post('/auth/credentials', { UserName: 'Ann', Password: password })
  const token = String((await signIn()).body['BearerToken'])
  const assign = (role: string, more: object = {}) =>
    post('/assignroles', { UserName: 'Ann', Roles: [role], ...more }, token)
  const close = async (): Promise<void> => {
    await server.stop()
    await runtime.close()
  }
  return { url: server.url, service, runtime, log, store, assign, signIn, close }
}
const verified = () => verifyLines(createReadStream(file()), 'stream', { now: Date.now(), refusalsKeptMs })
const ready = async (url: string) => (await fetch(new URL('/readyz', url))).status

describe('the stream of the audit', () => {
  test('S14 an entry is in the stream when its change is acknowledged, then its seal, and the stream verifies without a store', async () => {
    const { assign, close } = await serving()
    for (const role of ['Ops', 'Deploy']) {
      expect((await assign(role)).status).toBe(200)
      expect(lines().at(-1)).toMatchObject({ event: 'roles.changed', target: 'Ann' })
    }
    await until(() => lines().some(({ seal }) => seal !== undefined))
    const entries = lines().filter(({ id }) => id !== undefined)
    expect(entries.map(({ event }) => event)).toEqual(['user.added', 'signin.ok', 'roles.changed', 'roles.changed'])
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    await close()
    const verdict = await verified()
    expect(verdict).toMatchObject({ problems: [], more: 0 })
    expect(verdict.entries + verdict.unsealed).toBe(4)
  })

  test('S14 a change is refused, and nothing of it made, while the stream cannot be written', async () => {
    const { assign, signIn, close, log, url, service, runtime } = await serving()
    // Nobody can write to a folder, root included.
    renameSync(file(), `${file()}.1`)
    mkdirSync(file())
    const { status, body } = await assign('Ops')
    expect([status, JSON.stringify(body)]).toEqual([503, expect.stringContaining('The audit stream cannot be written')])
    expect(JSON.stringify(body)).not.toContain(folder)
    expect((await signIn()).status).toBe(503)
    expect(await ready(url)).toBe(503)
    expect((await adminOver(service).roles.show('Ann'))?.roles).toEqual(['Admin'])
    const metrics = (await runtime.metrics?.(1_000)) ?? []
    const sample = (name: string) => metrics.find((family) => family.name === name)?.samples[0]?.value
    expect([sample('svc_audit_stream_writable'), sample('svc_store_up')]).toEqual([0, 1])
    expect(log.filter((line) => line.startsWith('warn'))).toEqual([
      `warn: ${file()} is not a regular file: changes are refused until the audit stream can be written`,
    ])
    rmSync(file(), { recursive: true })
    expect((await assign('Ops')).status).toBe(200)
    expect(await ready(url)).toBe(200)
    expect(log).toContain('info: the audit stream can be written again')
    expect(lines().filter(({ event }) => event === 'roles.changed')).toHaveLength(1)
    await close()
  })

  test('S14 what a command changes beside the server is streamed once it is sealed', async () => {
    const { store, close } = await serving()
    const data = await openData({ store, create: false })
    await data.users.add(newUser('ben'), actor())
    await data.close()
    await until(() => lines().some(({ target }) => target === 'ben'))
    await close()
  })

  test('S14 a restarted server goes on where the stream ended, with what was changed meanwhile', async () => {
    const first = await serving()
    await until(() => existsSync(`${file()}.position`))
    await first.close()
    const data = await openData({ store: first.store, create: false })
    await data.users.add(newUser('ben'), actor())
    await data.close()
    const before = lines().length
    const second = await serving()
    await until(() => lines().some(({ target }) => target === 'ben'))
    expect(
      lines()
        .slice(before)
        .filter(({ event }) => event === 'user.added'),
    ).toHaveLength(1)
    await second.close()
    const seals = lines().flatMap(({ seal }) => seal ?? [])
    expect(seals).toEqual(seals.map((_, n) => n + 1))
  })

  test('S14 an entry whose change the database refused is withdrawn before its id is used again', async () => {
    const { service, store, assign, close } = await serving()
    await until(() => lines().some(({ seal }) => seal !== undefined))
    const database = new DatabaseSync(store)
    // A foreign key that is compared at the commit, after the entry has been streamed.
    database.exec(`CREATE TABLE "late" ("id" TEXT REFERENCES "users" ("id") DEFERRABLE INITIALLY DEFERRED);
      CREATE TRIGGER "refuse" AFTER INSERT ON "audit" WHEN NEW."target" = 'late'
      BEGIN INSERT INTO "late" VALUES ('nobody'); END`)
    database.close()
    await expect(adminOver(service).users.add({ userName: 'late', password, roles: [] }, by)).rejects.toThrow()
    const refused = lines().find(({ target }) => target === 'late')
    expect((await assign('Ops')).status).toBe(200)
    expect(lines().filter(({ id }) => id !== undefined && id === refused?.id)).toHaveLength(3)
    await until(() => lines().at(-1)?.seal !== undefined)
    await close()
    expect(await verified()).toMatchObject({ problems: [], withdrawn: 1 })
  })

  test('S14 an entry that a killed server has streamed and not committed is withdrawn when it starts again', async () => {
    const first = await serving()
    await until(() => existsSync(`${file()}.position`))
    await first.close()
    const entries = lines().filter(({ id }) => id !== undefined)
    const last = entries.at(-1)
    const id = Number(last?.id) + 1
    appendFileSync(file(), `${JSON.stringify({ ...last, id, target: 'lost' })}\n{"id":${id + 1},"a`)
    const second = await serving()
    await second.assign('Ops')
    await until(() => lines().at(-1)?.seal !== undefined)
    await second.close()
    const verdict = await verified()
    expect(verdict).toMatchObject({ problems: [], withdrawn: 1, torn: 1 })
    expect(verdict.entries).toBeGreaterThan(entries.length)
  })

  test('S14 a file that log rotation has moved away is made again', async () => {
    const { assign, close } = await serving()
    await assign('Ops')
    renameSync(file(), `${file()}.1`)
    expect((await assign('Deploy')).status).toBe(200)
    expect(lines().filter(({ event }) => event === 'roles.changed')).toHaveLength(1)
    expect(lines(`${file()}.1`).filter(({ event }) => event === 'roles.changed')).toHaveLength(1)
    await close()
  })

  test('S14 svc serve does not start with a stream that it cannot write', async () => {
    await expect(serving({ stream: join(folder, 'missing', 'audit.jsonl') })).rejects.toThrow(
      /The audit stream cannot be written: .*missing\/audit.jsonl does not exist/,
    )
  })

  test('S13 an answer to svc about roles has the head of the audit, and that to others has not', async () => {
    const { assign, service, close } = await serving()
    await until(async () =>
      JSON.stringify((await assign('Ops', { Meta: { 'svc.changes': '1' } })).body).includes('svc.auditHead'),
    )
    const { body } = await assign('Ops', { Meta: { 'svc.changes': '1' } })
    const head = String((body['Meta'] as Record<string, string>)['svc.auditHead'])
    expect(head).toMatch(/^\d+:[0-9a-f]{64}$/)
    const verdict = await adminOver(service).operations.verifyAudit(
      { Head: head },
      { ...by, signal: AbortSignal.timeout(farMs) },
    )
    expect(verdict.Problems).toEqual([])
    expect(JSON.stringify((await assign('Ops')).body)).not.toContain('svc.auditHead')
    await close()
  })

  test('S13 the head is in the log of svc serve', async () => {
    const { log, close } = await serving()
    await until(() => log.some((line) => /^info: audit head \d+:[0-9a-f]{64}$/.test(line)))
    await close()
  })
})

describe('a file of the stream', () => {
  test('S14 lines that are written at once are all there, in the order of their calls', async () => {
    const stream = new AuditStream(file())
    await stream.open()
    await Promise.all(Array.from({ length: 200 }, (_, n) => stream.write([JSON.stringify({ id: n })])))
    await stream.close()
    expect(lines().map(({ id }) => id)).toEqual(Array.from({ length: 200 }, (_, n) => n))
  })
  test('S14 a line that a crash has cut is not continued', async () => {
    writeFileSync(file(), '{"id":1}\n{"id":2,"ev')
    const stream = new AuditStream(file())
    await stream.write(['{"id":3}'])
    await stream.close()
    expect(readFileSync(file(), 'utf8')).toBe('{"id":1}\n{"id":2,"ev\n{"id":3}\n')
  })
})
