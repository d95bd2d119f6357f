import { type HttpPeer, httpPeer } from './http-peer.ts'

/** The answers of a simulated ad server, by path; `{origin}` becomes its own. Anything else is 404. */
export type VastState = {
  documents: Record<string, string>
  media: Record<string, { readonly type: string; readonly status?: number; readonly silent?: boolean }>
}

export const linear = (files: readonly string[]): string =>
  `<Creatives><Creative><Linear><Duration>00:00:10</Duration>
  <TrackingEvents><Tracking event="start">{origin}/track/start</Tracking></TrackingEvents>
  <VideoClicks><ClickThrough><![CDATA[{origin}/click?a=1&b=2]]></ClickThrough></VideoClicks>
  <MediaFiles>${files.join('')}</MediaFiles></Linear></Creative></Creatives>`
export const mediaFile = (path: string, type = 'video/mp4'): string =>
  `<MediaFile delivery="progressive" type="${type}" width="1" height="1"><![CDATA[ ${path} ]]></MediaFile>`
export const inLine = (files: readonly string[]): string =>
  `<Ad id="1"><InLine><AdSystem>test</AdSystem><AdTitle>clip</AdTitle><Error>{origin}/error?code=[ERRORCODE]</Error>
  <Impression><![CDATA[{origin}/impression?id=1]]></Impression>${linear(files)}</InLine></Ad>`
export const wrapper = (uri: string): string =>
  `<Ad id="2"><Wrapper><AdSystem>test</AdSystem><VASTAdTagURI><![CDATA[${uri}]]></VASTAdTagURI>
  <Impression>{origin}/impression?wrapped=1</Impression></Wrapper></Ad>`
export const vastDocument = (ads: string, version = '4.2'): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<VAST version="${version}">${ads}</VAST>`

/** A tag that leads by two wrappers to an ad with two media files, all of it well. */
export const soundVast = (): VastState => ({
  documents: {
    '/tag': vastDocument(wrapper('{origin}/one?cb=[CACHEBUSTING]'), '2.0'),
    '/one?cb=[CACHEBUSTING]': vastDocument(wrapper('/two'), '3.0'),
    '/two': vastDocument(inLine([mediaFile('{origin}/a.mp4'), mediaFile('/b.webm', 'video/webm')])),
  },
  media: { '/a.mp4': { type: 'video/mp4' }, '/b.webm': { type: 'video/webm' } },
})

export async function vast(state: VastState, tls?: { readonly key: string; readonly cert: string }): Promise<HttpPeer> {
  const server: HttpPeer = await httpPeer((request, response) => {
    const url = request.url ?? ''
    const media = state.media[url]
    const document = state.documents[url]
    if (media?.silent) return
    if (media) response.writeHead(media.status ?? 200, { 'Content-Type': media.type, 'Content-Length': 9 }).end()
    else if (document === undefined) response.writeHead(404).end()
    else {
      response.writeHead(200, { 'Content-Type': 'application/xml' }).end(document.replaceAll('{origin}', server.origin))
    }
  }, tls)
  return server
}
