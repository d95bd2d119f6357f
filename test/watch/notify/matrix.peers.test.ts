import { text as textOf } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { burst, type Synapse, startSynapse, synapseMissing } from '../../support/servers/synapse.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { peerSuite } from '../../support/suite/peer.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })

type Content = { readonly body: string; readonly msgtype: string; readonly format?: string }
type Event = { readonly type: string; readonly content: Content }
type Sync = {
  readonly rooms: {
    readonly join: Readonly<
      Record<
        string,
        { readonly unread_notifications: { readonly highlight_count: number; readonly notification_count: number } }
      >
    >
  }
}

peerSuite(synapseMissing, 'a real Matrix server (Synapse)', () => {
  let synapse: Synapse
  beforeAll(async () => {
    synapse = await startSynapse()
  })
  afterAll(async () => await synapse?.remove())

  /** Two users of their own, so that no test uses up the limit of another, and their chat. */
  async function joined(name: string, { server = synapse.origin, token }: { server?: string; token?: string } = {}) {
    const [writer, reader] = [await synapse.user(name), await synapse.user(`${name}-reader`)]
    const { room_id: channel } = await writer.call<{ readonly room_id: string }>('POST', '/createRoom', {
      invite: [`@${name}-reader:svc.test`],
    })
    const path = `/rooms/${encodeURIComponent(channel)}`
    await reader.call('POST', `${path}/join`, {})
    const matrix = { server, token: { env: 'MATRIX_TOKEN' }, channel }
    const env = { MATRIX_TOKEN: token ?? writer.token }
    const { receiver } = await opened(JSON.stringify({ name: 'ops', matrix }), { env })
    return {
      ...{ writer, receiver, path },
      /** The messages that the reader sees, the latest last. */
      read: async (): Promise<readonly Content[]> => {
        const { chunk } = await reader.call<{ readonly chunk: readonly Event[] }>(
          'GET',
          `${path}/messages?dir=b&limit=50`,
        )
        return chunk
          .filter(({ type }) => type === 'm.room.message')
          .map(({ content }) => content)
          .reverse()
      },
      /** The counts of unread messages of the reader, and of those that mention the reader. */
      unread: async () => {
        const { rooms } = await reader.call<Sync>('GET', '/sync')
        const { notification_count: all, highlight_count: mentions } = rooms.join[channel]?.unread_notifications ?? {}
        return { all, mentions }
      },
    }
  }

  test('M19 shows a fault and its recovery, each with the incident', async () => {
    const { receiver, read } = await joined('plain')
    expect(await receiver.send([notice({ url: 'https://svc.svc.test/#orders' })], signal())).toEqual({
      what: 'accepted',
    })
    const end = notice({ id: 'n2', what: 'end', text: 'it answers' })
    expect(await receiver.send([end], signal())).toEqual({ what: 'accepted' })
    const [fault, recovery, ...others] = await read()
    expect(others).toEqual([])
    expect(fault?.body).toMatch(/^🔴 \[prod\] FAILED: Sql\/postgres orders: connect.* refused the connection/)
    expect(fault?.body).toContain('Status page: https://svc.svc.test/#orders')
    expect(recovery?.body).toMatch(/^🟢 \[prod\] RECOVERED: Sql\/postgres orders/)
    for (const one of [fault, recovery]) {
      expect(one).toMatchObject({ msgtype: 'm.text', body: expect.stringContaining('incident i1') })
      expect(one?.format).toBeUndefined()
    }
  })

  test('M1 shows a message once that is sent again because its answer was lost', async () => {
    let isLost = true
    await using proxy = await httpPeer((request, response) => {
      void textOf(request).then(async (body) => {
        const { method = '', url, headers } = request
        const answer = await fetch(`${synapse.origin}${url}`, {
          method,
          body,
          headers: { authorization: headers.authorization ?? '', 'content-type': headers['content-type'] ?? '' },
        })
        const text = await answer.text()
        if (isLost) request.socket.destroy()
        else response.writeHead(answer.status).end(text)
      })
    })
    const { receiver, read } = await joined('lost', { server: proxy.origin })
    expect(await receiver.send([notice()], signal(), 'm-1')).toMatchObject({ what: 'later', isPerhapsReceived: true })
    isLost = false
    expect(await receiver.send([notice()], signal(), 'm-1')).toEqual({ what: 'accepted' })
    expect(await read()).toHaveLength(1)
    expect(await receiver.send([notice()], signal(), 'm-2')).toEqual({ what: 'accepted' })
    expect(await read()).toHaveLength(2)
  })

  test('M19 mentions nobody because of the text of a peer, and shows it as plain text', async () => {
    const { receiver, writer, path, read, unread } = await joined('hostile')
    const text =
      '@room @hostile-reader:svc.test hostile-reader <b>h</b> <a href="https://evil.example">x</a> https://evil.example'
    expect(await receiver.send([notice({ text })], signal())).toEqual({ what: 'accepted' })
    expect(await unread()).toEqual({ all: 1, mentions: 0 })
    const [content] = await read()
    expect(content?.body).toContain('<b>h</b>')
    expect(content?.body).not.toContain('https://evil')
    expect(content?.format).toBeUndefined()
    // The server would count a mention.
    await writer.call('PUT', `${path}/send/m.room.message/t1`, {
      ...{ msgtype: 'm.text', body: text, 'm.mentions': { user_ids: ['@hostile-reader:svc.test'] } },
    })
    expect(await unread()).toEqual({ all: 2, mentions: 1 })
  })

  test('M19 takes 300 notices in one message, which is cut', async () => {
    const { receiver, read } = await joined('many')
    const many = Array.from({ length: 300 }, (_, at) =>
      notice({ id: `n${at}`, text: '"\\\u{1F534}'.repeat(200) }, { monitor: `tcp m${at}` }),
    )
    expect(await receiver.send(many, signal())).toEqual({ what: 'accepted' })
    expect((await read()).map(({ body }) => body.includes('…'))).toEqual([true])
  })

  test('M19 is left alone for as long as it asks after too many messages', async () => {
    const { receiver, read } = await joined('fast')
    const deliveries = []
    for (let at = 0; at <= burst; at += 1) deliveries.push(await receiver.send([notice({ id: `n${at}` })], signal()))
    const later = deliveries.find(({ what }) => what === 'later')
    expect(later).toMatchObject({ isPerhapsReceived: false, message: expect.stringContaining('429') })
    const { afterMs } = later as { readonly afterMs?: number }
    expect(afterMs).toBeGreaterThan(0)
    expect(afterMs).toBeLessThanOrEqual(10_000)
    expect(await read()).toHaveLength(deliveries.filter(({ what }) => what === 'accepted').length)
  })

  test('M19 a token that it does not know and a chat that the user has left are refusals', async () => {
    const unknown = await joined('unknown', { token: 'syt_wrong_Zq8nT3abcdefgh' })
    const refused = await unknown.receiver.send([notice()], signal())
    expect(refused).toMatchObject({ what: 'refused', message: expect.stringContaining('M_UNKNOWN_TOKEN') })
    expect(JSON.stringify(refused)).not.toContain('Zq8nT3')
    const left = await joined('left')
    await left.writer.call('POST', `${left.path}/leave`, {})
    const gone = await left.receiver.send([notice()], signal())
    expect(gone).toMatchObject({ what: 'refused', message: expect.stringContaining('M_FORBIDDEN') })
  })
})
