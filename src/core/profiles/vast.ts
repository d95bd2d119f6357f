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
  'inline ads': 'VAST error 101 (not as the schema says)',
}

/**
 * IAB VAST documents: the tag, its wrappers and the media files. Other URLs in the documents (impressions, tracking,
 * clicks and errors) are never requested, because that would bill an advertiser.
 */
export default {
  title: 'IAB VAST tag, with its wrappers and media files',
  doc: 'An inference from the name alone; tried against a simulated ad server only. Impression, tracking, click and error URLs are never asked.',
  parameters: {
    url: { type: 'url', required: true, doc: 'A tag for probing: one whose requests nobody is billed for' },
    caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
    ads: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 1 },
      doc: 'Ads that there should be; a whole document without any is a deliberate empty answer, so only a warning',
    },
    linkHosts: {
      type: 'texts',
      doc: 'Hosts that wrappers and media files may lead to; without it public addresses on the usual ports',
    },
    plainHttp: { type: 'flag', default: false, doc: 'Let wrappers and media files be http:// too' },
    mediaFiles: { type: 'integer', default: 10, min: 1, max: 50, doc: 'Media files that are asked at most' },
    queue: { type: 'url', doc: 'Where the depth of its queue is told, in JSON or XML' },
    queuePath: { type: 'text', default: '$.depth', doc: 'Path of the depth' },
    queueDepth: { type: 'threshold', unit: 'ratio', default: { warn: 1_000 }, doc: 'How deep the queue may be' },
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
            loop: 'VAST error 302 (wrappers without end)',
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
