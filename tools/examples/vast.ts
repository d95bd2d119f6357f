import { makeCertificates, opensslMissing } from '../../test/support/servers/certs.ts'
import { httpPeer, pages } from '../../test/support/simulated/http-peer.ts'
import { mediaFile, soundVast, vast, vastDocument, wrapper } from '../../test/support/simulated/vast.ts'
import { during, type Example } from './example.ts'
import type { Stage } from './stage.ts'

const meaning = (what: string): string =>
  `${what} by IAB VAST documents. That is an inference from the name alone. svc asks for the tag, for the wrappers that it leads to, and for media files by HEAD; never an impression, tracking, click or error URL. Still, name a tag that nobody is billed for.`
const peers = '**A simulated ad server** that speaks real HTTP over real TLS, with documents of VAST 2 to 4.'

/** The ad server of both types, and what is set alike. */
async function begin(stage: Stage, onEnd: (end: () => unknown) => void) {
  const certificates = makeCertificates()
  onEnd(certificates.remove)
  const state = soundVast()
  const server = await vast(state, certificates.good)
  onEnd(() => server[Symbol.asyncDispose]())
  stage.port(server.port, 18_443)
  const caFile = stage.file('ca.pem', certificates.ca)
  return { state, server, caFile, sound: () => Object.assign(state, soundVast()) }
}

export const msgVast: Example = {
  type: 'MsgVast',
  title: 'VAST messaging',
  meaning: meaning('A server that hands out advertising messages'),
  peers,
  missing: opensslMissing(),
  show: (stage) =>
    during(async (onEnd) => {
      const { state, server, caFile, sound } = await begin(stage, onEnd)
      let depth = 12
      const queue = await httpPeer(pages(() => ({ '/queue': { depth } })))
      onEnd(() => queue[Symbol.asyncDispose]())
      stage.port(queue.port, 18_081)
      await stage.yaml(`types:
  MsgVast:
    host: false
    monitors:
      - profile: vast
        name: spots
        url: ${server.origin}/tag
        caFile: ${caFile}
        queue: http://127.0.0.1:${queue.port}/queue
        queuePath: $.depth
        queueDepth: {warn: 100, limit: 1000}
`)
      await stage.list()
      await stage.green()

      state.documents['/two'] = vastDocument(wrapper('{origin}/one?cb=[CACHEBUSTING]'))
      await stage.red('Wrappers that lead back to one another', {
        happened:
          'The second wrapper led back to the first. A player would go on until its own limit, and show nothing; the message says which document leads back, under the code that IAB has for it. Basic and Standard are well: the tag itself is a sound document.',
        says: [/VAST error 302/],
      })
      sound()

      state.media['/b.webm'] = { type: 'text/html', status: 404 }
      depth = 2_400
      await stage.red('A media file that is gone, and a queue that grows', {
        happened: 'One of the two media files answered 404, and 2,400 messages waited.',
        says: [/VAST error 401/, /queue depth: 2400 \(warn 100, fail 1000\)/],
      })
    }),
}

export const asgVast: Example = {
  type: 'AsgVast',
  title: 'VAST assignment',
  meaning: meaning('A server that assigns advertisements to breaks'),
  peers,
  missing: opensslMissing(),
  show: (stage) =>
    during(async (onEnd) => {
      const { state, server, caFile, sound } = await begin(stage, onEnd)
      await stage.yaml(`types:
  AsgVast:
    host: false
    monitors:
      - profile: vast
        name: breaks
        url: ${server.origin}/tag
        caFile: ${caFile}
        ads: {warn: 1}                 # an empty answer may be meant: a warning
        mediaFiles: 5
`)
      await stage.list()
      await stage.green()

      Object.assign(state.documents, { '/tag': vastDocument('') })
      await stage.red('No advertisement', {
        happened:
          'The server answered with a whole document that holds no ad. That is how a server says that it has none, so it is a warning and the exit code stays 0; `--fail-on warn` makes it 3.',
        says: [/VAST error 303/, /! AsgVast/],
        code: 0,
      })
      sound()

      state.documents['/two'] = vastDocument(untitled)
      await stage.red('Not a VAST document', {
        happened: 'The second wrapper led to a document without a title, which no player has to accept.',
        says: [/VAST error 101/],
      })
      sound()

      state.documents['/tag'] = '<html><body>Wartung</body></html>'
      await stage.red('A page instead of a document', {
        happened:
          'The ad server answered 200 with an HTML page, as a proxy does that is being worked at. Basic saw a 200; the document tells.',
        says: [/VAST error/],
        mode: 'Standard',
      })
    }),
}

/** An ad that lacks what the schema demands. */
const untitled = `<Ad id="1"><InLine><AdSystem>test</AdSystem><Impression><![CDATA[{origin}/impression]]></Impression><Creatives><Creative><Linear><MediaFiles>${mediaFile('{origin}/a.mp4')}</MediaFiles></Linear></Creative></Creatives></InLine></Ad>`
