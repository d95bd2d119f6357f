import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../../src/core/base/settings/index.ts'
import { readProxy } from '../../../src/core/watch/notify/receivers/kind.ts'
import { problemsOf, refused } from '../../config/given.ts'
import { files } from '../../support/engine/files.ts'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { serviceRows, settingsAt } from '../../support/notify/service-rows.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

/** A simulated HTTP proxy on loopback that keeps what it is asked for. `status`: its answer to CONNECT. */
async function proxy(status = 200) {
  const requests: { readonly target: string; readonly account: string | undefined }[] = []
  const server = createServer()
  server.on('connect', ({ url = '', headers }, socket) => {
    requests.push({ target: url, account: headers['proxy-authorization'] })
    socket.on('error', () => {})
    socket.write(`HTTP/1.1 ${status} planted-Zq8nT3\r\n\r\n`)
    if (status !== 200) return void socket.end()
    const [host = '', port = ''] = url.split(':')
    const onward = connect(Number(port), host)
    onward.on('error', () => socket.destroy())
    onward.pipe(socket).pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.closeAllConnections())
  onTestFinished(() => void server.close())
  return { requests, host: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test('M19 a webhook is reached by its proxy, which gets its account', async () => {
  await using peer = await httpPeer((_, response) => response.writeHead(204).end())
  const by = await proxy()
  const target = new URL(peer.origin).host
  const plain = await opened(`{name: chat, webhook: {url: "${peer.origin}/hook", proxy: "http://${by.host}"}}`)
  expect(await plain.receiver.send([notice()], signal())).toEqual({ what: 'accepted' })
  const account = await opened(`{name: chat, webhook: {url: "${peer.origin}/hook", proxy: {env: PROXY}}}`, {
    env: { PROXY: `http://ann:p%40ss@${by.host}` },
  })
  expect(await account.receiver.send([notice()], signal())).toEqual({ what: 'accepted' })
  expect(by.requests).toEqual([
    { target, account: undefined },
    { target, account: `Basic ${Buffer.from('ann:p@ss').toString('base64')}` },
  ])
})

test('M19 a proxy that refuses is named, and its password is in no message', async () => {
  const by = await proxy(407)
  const { receiver } = await opened(
    '{name: chat, webhook: {url: "https://chat.example.com/hook", proxy: {env: PROXY}}}',
    {
      env: { PROXY: `http://ann:planted-Zq8nT3@${by.host}` },
    },
  )
  const delivery = await receiver.send([notice()], signal())
  expect(delivery).toMatchObject({ what: 'later', isPerhapsReceived: false })
  expect(JSON.stringify(delivery)).toContain(`the proxy ${by.host} refused the sign-in of ann`)
  expect(JSON.stringify(delivery)).not.toContain('Zq8nT3')
})

test.each(Object.keys(serviceRows))('M19 no message of %s goes to a proxy without TLS to the service', async (name) => {
  const by = await proxy()
  const origin = 'http://127.0.0.1:1'
  const yaml = JSON.stringify({ name: 'ops', [name]: { ...settingsAt(name, origin), proxy: `http://${by.host}` } })
  const { receiver } = await opened(yaml, { env: serviceRows[name]?.env(origin) ?? {} })
  const delivery = await receiver.send([notice()], signal())
  expect(JSON.stringify(delivery)).toContain('is reached by a proxy: credentials are not sent without TLS')
  expect(by.requests).toEqual([])
})

test('M19 by default, the environment decides, and none means none', async () => {
  const env = { HTTPS_PROXY: 'http://proxy.internal:3128', NO_PROXY: '.example.net' }
  const proxyOf = async (written: Parameters<typeof readProxy>[0], place: string, variables = env) =>
    (await readProxy(written, new URL(place), files, variables))?.href
  expect(await proxyOf(undefined, 'https://chat.example.com')).toBe('http://proxy.internal:3128/')
  expect(await proxyOf(undefined, 'https://chat.example.net')).toBeUndefined()
  expect(await proxyOf(undefined, 'https://127.0.0.1')).toBeUndefined()
  expect(await proxyOf('none', 'https://chat.example.com')).toBeUndefined()
  expect(await proxyOf('socks5://p:1', 'https://chat.example.net')).toBe('socks5://p:1')
  const secure = { HTTPS_PROXY: 'https://proxy.internal', NO_PROXY: '' }
  await expect(proxyOf(undefined, 'https://chat.example.com', secure)).rejects.toThrow('HTTPS_PROXY is not a proxy')
  const secret = new Secret('{env: PROXY}', async () => await Promise.resolve('planted-Zq8nT3'))
  await expect(proxyOf(secret, 'https://chat.example.com')).rejects.toThrow(/^\{env: PROXY\} is not a proxy like/)
})

test('M19 a proxy that cannot be one is a mistake', async () => {
  const problem = async (written: string): Promise<string> =>
    problemsOf(await refused(`notify: [{name: c, webhook: {url: "https://a.example", proxy: "${written}"}}]`)).join(
      '\n',
    )
  expect(await problem('proxy:3128')).toContain('is not a proxy: write http://host:port')
  expect(await problem('http://ann:x@proxy:3128')).toContain('contains an account: write {env: NAME}')
})
