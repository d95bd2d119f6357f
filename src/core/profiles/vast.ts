import { type Profile, placeholder } from './profile.ts'

const ask = { url: placeholder('url'), caFile: placeholder('caFile'), status: ['200'], redirects: 3 }
const version = { '/VAST/@version': '/^[234](\\.\\d+)?$/' }
const inline = {
  name: 'inline ads',
  path: '/VAST/Ad/InLine',
  needs: ['AdSystem', 'AdTitle', 'Impression', 'Creatives'],
}
const codes = {
  parse: 'VAST error 100 (XML parsing)',
  '/VAST/@version': 'VAST error 102 (version not supported)',
  'inline ads': 'VAST error 101 (schema violation)',
}

/**
 * IAB VAST documents: the tag, its wrappers and the media files. Other URLs in the documents (impressions, tracking,
 * clicks and errors) are never requested, because that would bill an advertiser.
 */
export default {
  title: 'IAB VAST tag, with its wrappers and media files',
  doc: 'An inference from the name alone, tested only against a simulated ad server. Never requests impression, tracking, click or error URLs.',
  parameters: {
    url: { type: 'url', required: true, doc: 'URL of a test tag, whose requests are not billed to anyone' },
    caFile: { type: 'text', doc: 'PEM file of CAs to trust in addition to those of the system' },
    ads: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 1 },
      doc: 'Minimum number of ads; a complete document without ads is a deliberate empty response, so it only warns',
    },
    linkHosts: {
      type: 'texts',
      doc: 'Hosts to which wrappers and media files may lead; default: public addresses on the usual ports',
    },
    plainHttp: { type: 'flag', default: false, doc: 'Allow http:// for wrappers and media files' },
    mediaFiles: { type: 'integer', default: 10, min: 1, max: 50, doc: 'Maximum number of media files to request' },
    queue: { type: 'url', doc: 'URL that reports the depth of its queue, in JSON or XML' },
    queuePath: { type: 'text', default: '$.depth', doc: 'Path of the depth' },
    queueDepth: { type: 'threshold', unit: 'ratio', default: { warn: 1_000 }, doc: 'Maximum depth of the queue' },
  },
  monitors: [
    { kind: 'http', name: 'tag', ...ask },
    {
      kind: 'http',
      name: 'document',
      ...ask,
      dependsOn: ['tag'],
      depth: 'Standard',
      xml: version,
      measure: [{ name: 'ads', path: '/VAST/Ad', least: placeholder('ads') }, inline],
      codes: { ...codes, ads: 'VAST error 303 (no ads)' },
    },
    {
      kind: 'http',
      name: 'media',
      ...ask,
      dependsOn: ['document'],
      depth: 'Advanced',
      linkHosts: placeholder('linkHosts'),
      links: [
        {
          name: 'wrapped tag',
          path: '/VAST/Ad/Wrapper/VASTAdTagURI',
          status: ['200'],
          levels: 5,
          most: 20,
          plainHttp: placeholder('plainHttp'),
          xml: version,
          measure: [{ name: 'ads', path: '/VAST/Ad', least: { limit: 1 } }, inline],
          codes: {
            ...codes,
            ads: 'VAST error 303 (no ads after a wrapper)',
            status: 'VAST error 300 (wrapper)',
            unreachable: 'VAST error 300 (wrapper)',
            refused: 'VAST error 300 (wrapper)',
            loop: 'VAST error 302 (wrapper loop)',
            deep: 'VAST error 302 (too many wrappers)',
            timeout: 'VAST error 301 (wrapper timed out)',
          },
        },
        {
          name: 'media file',
          path: '/VAST/Ad/InLine/Creatives/Creative/Linear/MediaFiles/MediaFile',
          method: 'HEAD',
          typeAt: '@type',
          most: placeholder('mediaFiles'),
          plainHttp: placeholder('plainHttp'),
          codes: {
            status: 'VAST error 401 (file not found)',
            unreachable: 'VAST error 401 (file not found)',
            refused: 'VAST error 400 (linear ad)',
            timeout: 'VAST error 402 (media file timed out)',
            type: 'VAST error 403 (media type)',
          },
        },
      ],
    },
    {
      kind: 'http',
      name: 'queue',
      when: ['queue'],
      depth: 'Standard',
      url: placeholder('queue'),
      caFile: placeholder('caFile'),
      measure: [{ name: 'queue depth', path: placeholder('queuePath'), atMost: placeholder('queueDepth') }],
    },
  ],
} as const satisfies Profile
