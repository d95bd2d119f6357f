import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ServerType } from '../../../src/core/protocol/index.ts'
import { complaints, runType } from '../../support/engine/run-types.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import {
  inLine,
  mediaFile,
  soundVast,
  type VastState,
  vast,
  vastDocument,
  wrapper,
} from '../../support/simulated/vast.ts'
import { suiteWith } from '../../support/suite/peer.ts'

type Mode = 'Basic' | 'Standard' | 'Advanced'
async function look(
  change: (state: VastState) => void,
  mode: Mode = 'Advanced',
  more = '',
  type: ServerType = 'MsgVast',
) {
  const state = soundVast()
  change(state)
  await using server = await vast(state)
  const yaml = `types: {${type}: [{profile: vast, name: ads, url: "${server.origin}/tag"${more}}]}`
  const reports = await runType(yaml, type, mode)
  await expect.poll(() => server.open()).toBe(0)
  const messages = reports.flatMap(({ results }) => results.map(({ message }) => message)).join('\n')
  return {
    requests: server.requestLines(),
    failed: complaints(reports),
    warned: complaints(reports, 'warning'),
    messages: messages,
  }
}
const billed = /impression|track|click|error\?/

describe('the profile vast', () => {
  test('a simulated tag, its wrappers and its media files are requested, and nothing that is billed', async () => {
    for (const type of ['MsgVast', 'AsgVast'] as const) {
      const { requests, failed, warned } = await look(() => {}, 'Advanced', '', type)
      expect([failed, warned]).toEqual([[], []])
      expect(requests.filter((line) => line.startsWith('HEAD'))).toEqual(['HEAD /a.mp4', 'HEAD /b.webm'])
      expect(requests).toContain('GET /one?cb=[CACHEBUSTING]')
      expect(requests.join()).not.toMatch(billed)
    }
    expect((await look(() => {}, 'Basic')).requests).toEqual(['GET /tag'])
    expect((await look(() => {}, 'Standard')).requests).toEqual(['GET /tag', 'GET /tag'])
  })

  test('a simulated empty answer is a warning with its code, or what `ads` sets', async () => {
    const empty = (state: VastState) => Object.assign(state.documents, { '/tag': '<VAST version="3.0"/>' })
    const { failed, warned } = await look(empty)
    expect(failed).toEqual([])
    expect(warned).toEqual([
      expect.stringMatching(/^http ads document measure: VAST error 303 \(no ads\): .*: ads: 0 \(warn below 1\)$/),
    ])
    expect((await look(empty, 'Standard', ', ads: {warn: off, limit: 1}')).failed[0]).toMatch(
      /error 303 .*: 0 \(fail below 1\)$/,
    )
    expect(await look(empty, 'Standard', ', ads: off')).toMatchObject({ failed: [], warned: [] })
  })

  test.each([
    [
      'that is not XML',
      (s: VastState) => Object.assign(s.documents, { '/tag': '<VAST version="3.0"><Ad></VAST>' }),
      /^http ads document xml: .*VAST error 100 \(XML parsing\): the answer is not well-formed XML: line 1/,
    ],
    [
      'of another version',
      (s: VastState) => Object.assign(s.documents, { '/tag': vastDocument('', '5.0') }),
      /error 102 \(version not supported\): \/VAST\/@version is "5\.0"/,
    ],
    [
      'that is another document',
      (s: VastState) => Object.assign(s.documents, { '/tag': '<html/>' }),
      /error 102 .*the answer has no \/VAST\/@version/,
    ],
    [
      'whose ad lacks its system',
      (s: VastState) => Object.assign(s.documents, { '/tag': vastDocument('<Ad><InLine><AdTitle/></InLine></Ad>') }),
      /error 101 \(schema violation\): .*inline ads: 1 of 1 have no AdSystem$/,
    ],
    [
      'whose wrapper is gone',
      (s: VastState) => Reflect.deleteProperty(s.documents, '/two'),
      /^http ads media links: VAST error 300 \(wrapper\): wrapped tag \S+\/two: \S+ answered 404/,
    ],
    [
      'whose wrapper leads back',
      (s: VastState) => Object.assign(s.documents, { '/two': vastDocument(wrapper('{origin}/tag')) }),
      /error 302 \(wrapper loop\)/,
    ],
    [
      'whose wrapper leads to nothing',
      (s: VastState) => Object.assign(s.documents, { '/two': vastDocument('') }),
      /error 303 \(no ads after a wrapper\)/,
    ],
    [
      'whose wrapper breaks off',
      (s: VastState) => Object.assign(s.documents, { '/two': '<VAST version="4.0"><Ad>' }),
      /links|xml: .*error 100/,
    ],
    [
      'whose media file is gone',
      (s: VastState) => Reflect.deleteProperty(s.media, '/a.mp4'),
      /error 401 \(file not found\): media file \S+\/a\.mp4: \S+ answered 404 \(expected 2xx\)$/,
    ],
    [
      'whose media file is of another type',
      (s: VastState) => Object.assign(s.media, { '/a.mp4': { type: 'text/html; charset=utf-8' } }),
      /error 403 \(media type\): .* whose type is "text\/html", expected "video\/mp4"$/,
    ],
  ])('a simulated tag %s fails with its code', async (_, change, message) => {
    const { failed, requests } = await look(change)
    expect(failed[0]).toMatch(message)
    expect(requests.join()).not.toMatch(billed)
  })

  test('simulated wrappers that refer to each other are reported, and requested once', async () => {
    const { failed, requests } = await look((state) =>
      Object.assign(state.documents, { '/two': vastDocument(wrapper('{origin}/one?cb=[CACHEBUSTING]')) }),
    )
    expect(failed).toEqual([expect.stringMatching(/error 302 \(wrapper loop\)/)])
    expect(requests.filter((line) => line.startsWith('GET /one'))).toHaveLength(1)
  })

  test('a simulated chain of wrappers without end is followed five deep, and no further', async () => {
    const { failed, requests } = await look((state) => {
      for (let n = 0; n < 12; n += 1) state.documents[`/w${n}`] = vastDocument(wrapper(`/w${n + 1}`))
      state.documents['/tag'] = vastDocument(wrapper('/w0'))
    })
    expect(failed).toEqual([
      expect.stringMatching(/error 302 \(too many wrappers\): wrapped tag \S+\/w5 exceeds the depth of 5 levels$/),
    ])
    expect(requests.filter((line) => line.includes('/w'))).toEqual([0, 1, 2, 3, 4].map((n) => `GET /w${n}`))
  })

  test('a simulated media file that does not answer is abandoned, and the others are requested', async () => {
    const { failed, requests: request } = await look((state) =>
      Object.assign(state.media, { '/a.mp4': { type: '', silent: true } }),
    )
    expect(failed).toEqual([expect.stringMatching(/error 402 \(media file timed out\): .*gave no answer within 5 s$/)])
    expect(request).toContain('HEAD /b.webm')
  })

  test('a simulated document of a thousand media files costs ten requests, and the rest is counted', async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => mediaFile(`/${n}.mp4`))
    const { requests, warned } = await look((state) =>
      Object.assign(state.documents, { '/tag': vastDocument(inLine(many)) }),
    )
    expect(requests.filter((line) => line.startsWith('HEAD'))).toHaveLength(10)
    expect(warned).toEqual([expect.stringMatching(/media file: 990 more not requested \(limit 10\)$/)])
  })

  test('a simulated document cannot send svc to other machines of this network, nor to plain http', async () => {
    const { failed, requests } = await look((state) => {
      const files = [
        'http://192.0.2.1/a',
        'https://127.0.0.1:1/b',
        'https://169.254.169.254/c',
        'file:///etc/passwd',
        'http://[',
      ]
      state.documents['/tag'] = vastDocument(inLine(files.map((path) => mediaFile(path))))
    })
    expect(requests.filter((line) => line.startsWith('HEAD'))).toEqual([])
    expect(failed.map((line) => line.replace(/^.*media file: /, ''))).toEqual([
      'http://192.0.2.1/a is not requested: it is not https',
      'https://127.0.0.1:1/b is not requested: its port is not the default: add host:port to linkHosts',
      'https://169.254.169.254/c is not requested: its address is not public: add the host to linkHosts',
      'file:///etc/passwd is not requested: it is neither https nor http',
      'the value is not a URL',
    ])
  })
})

suiteWith(opensslMissing(), 'the profile vast over https', () => {
  let certs: Certificates
  beforeAll(() => {
    certs = makeCertificates()
  })
  afterAll(() => certs.remove())

  test('simulated media files elsewhere are requested over https where linkHosts names their host, and from no other', async () => {
    await using cdn = await vast({ documents: {}, media: { '/a.mp4': { type: 'video/mp4' } } }, certs.good)
    const state = soundVast()
    state.documents['/tag'] = vastDocument(
      inLine([mediaFile(`${cdn.origin}/a.mp4`), mediaFile('https://elsewhere.test/b')]),
    )
    await using server = await vast(state, certs.good)
    const run = async (hosts: string) =>
      await runType(
        `types: {MsgVast: [{profile: vast, name: ads, url: "${server.origin}/tag", caFile: ${certs.caFile}, linkHosts: ${hosts}}]}`,
        'MsgVast',
        'Advanced',
      )
    const listed = await run(`"127.0.0.1:${cdn.port}"`)
    expect(complaints(listed)).toEqual([
      expect.stringMatching(/elsewhere\.test\/b is not requested: its host is not in linkHosts$/),
    ])
    expect(cdn.requestLines()).toEqual(['HEAD /a.mp4'])
    await run('ads.example')
    expect(cdn.requestLines()).toHaveLength(1)
  })
})
