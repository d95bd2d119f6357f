import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ServerType } from '../../src/core/protocol/index.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../support/certs.ts'
import { suiteWith } from '../support/peer.ts'
import { complaints, runType } from '../support/run-types.ts'
import { inLine, mediaFile, soundVast, type VastState, vast, vastDocument, wrapper } from '../support/vast.ts'

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
  const told = reports.flatMap(({ results }) => results.map(({ message }) => message)).join('\n')
  return { asked: server.asked(), failed: complaints(reports), warned: complaints(reports, 'warning'), told }
}
const billed = /impression|track|click|error\?/

describe('the profile vast', () => {
  test('a simulated tag, its wrappers and its media files are asked, and nothing that is billed', async () => {
    for (const type of ['MsgVast', 'AsgVast'] as const) {
      const { asked, failed, warned } = await look(() => {}, 'Advanced', '', type)
      expect([failed, warned]).toEqual([[], []])
      expect(asked.filter((line) => line.startsWith('HEAD'))).toEqual(['HEAD /a.mp4', 'HEAD /b.webm'])
      expect(asked).toContain('GET /one?cb=[CACHEBUSTING]')
      expect(asked.join()).not.toMatch(billed)
    }
    expect((await look(() => {}, 'Basic')).asked).toEqual(['GET /tag'])
    expect((await look(() => {}, 'Standard')).asked).toEqual(['GET /tag', 'GET /tag'])
  })

  test('a simulated empty answer is a warning with its code, or what `ads` makes of it', async () => {
    const empty = (state: VastState) => Object.assign(state.documents, { '/tag': '<VAST version="3.0"/>' })
    const { failed, warned } = await look(empty)
    expect(failed).toEqual([])
    expect(warned).toEqual([
      expect.stringMatching(/^http ads document measure: VAST error 303 \(no ads\): .*: ads: 0 \(warns below 1\)$/),
    ])
    expect((await look(empty, 'Standard', ', ads: {warn: off, limit: 1}')).failed[0]).toMatch(
      /error 303 .*: 0 \(at least 1\)$/,
    )
    expect(await look(empty, 'Standard', ', ads: off')).toMatchObject({ failed: [], warned: [] })
  })

  test.each([
    [
      'that is no XML',
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
    const { failed, asked } = await look(change)
    expect(failed[0]).toMatch(message)
    expect(asked.join()).not.toMatch(billed)
  })

  test('simulated wrappers that lead to each other are told, and asked once', async () => {
    const { failed, asked } = await look((state) =>
      Object.assign(state.documents, { '/two': vastDocument(wrapper('{origin}/one?cb=[CACHEBUSTING]')) }),
    )
    expect(failed).toEqual([expect.stringMatching(/error 302 \(wrapper loop\)/)])
    expect(asked.filter((line) => line.startsWith('GET /one'))).toHaveLength(1)
  })

  test('simulated wrapper loop are followed five deep, and no further', async () => {
    const { failed, asked } = await look((state) => {
      for (let n = 0; n < 12; n += 1) state.documents[`/w${n}`] = vastDocument(wrapper(`/w${n + 1}`))
      state.documents['/tag'] = vastDocument(wrapper('/w0'))
    })
    expect(failed).toEqual([
      expect.stringMatching(/error 302 \(too many wrappers\): wrapped tag \S+\/w5 exceeds the depth of 5 levels$/),
    ])
    expect(asked.filter((line) => line.includes('/w'))).toEqual([0, 1, 2, 3, 4].map((n) => `GET /w${n}`))
  })

  test('a simulated media file that does not answer is given up, and the others are asked', async () => {
    const { failed, asked } = await look((state) =>
      Object.assign(state.media, { '/a.mp4': { type: '', silent: true } }),
    )
    expect(failed).toEqual([expect.stringMatching(/error 402 \(media file timed out\): .*gave no answer within 5 s$/)])
    expect(asked).toContain('HEAD /b.webm')
  }, 20_000)

  test('a simulated document of a thousand media files costs ten questions, and says what was left', async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => mediaFile(`/${n}.mp4`))
    const { asked, warned } = await look((state) =>
      Object.assign(state.documents, { '/tag': vastDocument(inLine(many)) }),
    )
    expect(asked.filter((line) => line.startsWith('HEAD'))).toHaveLength(10)
    expect(warned).toEqual([expect.stringMatching(/media file: 990 more not requested \(limit 10\)$/)])
  })

  test('a simulated document cannot send svc to other machines of this network, nor to plain http', async () => {
    const { failed, asked } = await look((state) => {
      const files = [
        'http://192.0.2.1/a',
        'https://127.0.0.1:1/b',
        'https://169.254.169.254/c',
        'file:///etc/passwd',
        'http://[',
      ]
      state.documents['/tag'] = vastDocument(inLine(files.map((path) => mediaFile(path))))
    })
    expect(asked.filter((line) => line.startsWith('HEAD'))).toEqual([])
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

  test('simulated media files elsewhere are asked over https where linkHosts names their host, and nobody else', async () => {
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
    expect(cdn.asked()).toEqual(['HEAD /a.mp4'])
    await run('ads.example')
    expect(cdn.asked()).toHaveLength(1)
  })
})
