import { expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { load } from './given.ts'

const mistake = async (yaml: string): Promise<string> => {
  const fault = await load(yaml).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(fault instanceof Fault)) throw new Error(`no mistake in ${yaml}`)
  return fault.message.replace(/^.*svc\.yaml:/, '')
}

test('W18 `confirm:` and `flapping:` have defaults in `serve:`, and a type and a monitor may have their own', async () => {
  const { serve, types } = await load(`types:
  App:
    confirm: 40s
    flapping: off
    monitors:
      - {kind: tcp, host: localhost, port: 9, confirm: 1m, flapping: 10}
`)
  expect(serve).toMatchObject({ confirm: 20_000, flapping: 6, witness: [] })
  expect(types.App).toMatchObject({ confirm: 40_000, flapping: 'off' })
  expect(types.App?.monitors[0]).toMatchObject({ confirmMs: 60_000, flapping: 10 })
})

test('W18 a mistake in `confirm:` and `flapping:` names what to write', async () => {
  expect(await mistake('serve: {confirm: 1s}\n')).toBe('1:9: serve.confirm is 1s: give 5s to 1h')
  expect(await mistake('serve: {flapping: 1}\n')).toBe('1:9: serve.flapping is 1: give 2 to 100')
  expect(await mistake('serve: {flapping: often}\n')).toContain('must be a whole number or off, not')
})

test('W19 a witness is one of three forms, and one alone is a mistake', async () => {
  const { serve } = await load(
    'serve: {witness: ["tcp://10.0.0.1:443", "dns://9.9.9.9/example.com", "https://example.com"]}\n',
  )
  expect(serve.witness).toHaveLength(3)
  expect(await mistake('serve: {witness: ["tcp://10.0.0.1:443"]}\n')).toContain('give two or more')
  for (const mistaken of ['tcp://10.0.0.1', 'ftp://a', 'dns://9.9.9.9', 'https://me:secret@a', '10.0.0.1']) {
    expect(await mistake(`serve: {witness: ["${mistaken}", "tcp://10.0.0.1:443"]}\n`)).toContain('must be a peer')
  }
})

test('W18 the `flapping:` of a heartbeat monitor is its threshold, and that of its type decides on its incidents', async () => {
  const { types } = await load('types: {Batch: {flapping: off, monitors: [{kind: heartbeat, flapping: {warn: 2}}]}}\n')
  expect(types.Batch).toMatchObject({ flapping: 'off' })
  expect(types.Batch?.monitors[0]?.flapping).toBeUndefined()
  expect(types.Batch?.monitors[0]?.settings).toMatchObject({ flapping: { warn: 2 } })
})

test('W4 the address of a node for other nodes is one of HTTP, without a path', async () => {
  expect((await load('serve: {peer: "http://10.0.0.7:8790"}\n')).serve.peer).toBe('http://10.0.0.7:8790')
  expect((await load('serve: {peer: "https://[fd00::7]:8790"}\n')).serve.peer).toBe('https://[fd00::7]:8790')
  for (const mistaken of ['10.0.0.7:8790', 'tcp://10.0.0.7:8790', 'a']) {
    expect(await mistake(`serve: {peer: "${mistaken}"}\n`)).toContain('write it like http://10.0.0.7:8790')
  }
  for (const mistaken of ['http://a:1/b', 'http://me:secret@a:1', 'http://a:1?b']) {
    expect(await mistake(`serve: {peer: "${mistaken}"}\n`)).toMatch(/ must be an address alone: write http:\/\/a:1$/)
  }
})
