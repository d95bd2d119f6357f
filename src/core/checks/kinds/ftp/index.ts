export { loadFtpLists } from './list.ts'
export { ftpPortOf, ftpSettings } from './settings.ts'

import { trustDecision } from '../../../base/net/certificates.ts'
import { listConnections } from '../../../base/net/connect.ts'
import { quote } from '../../../base/net/text.ts'
import type { Threshold } from '../../../base/settings/index.ts'
import { atMost, certificateCheck, checksOn, fail, includes, networkKind, ok, type Result } from '../../engine/index.ts'
import { folderChecks } from '../../folders/index.ts'
import { encryptionOf, firstLine, openToAll } from '../../recognition/index.ts'
import { loadFtpLists } from './list.ts'
import { classicPassive, dataConnection, extendedPassive } from './passive.ts'
import { type FtpBanner, type FtpEncryption, FtpSession, readAccount, stagesOf } from './session.ts'
import { ftpPortOf, ftpSettings, type TlsMode, validateFtp } from './settings.ts'

const { tls, latency, username, insecureFtp, certificate: validity } = ftpSettings

const check = checksOn<FtpSession>()

/** The stages before the sign-in; with implicit TLS, encryption comes first. */
export const greeting = check({
  depth: 'Basic',
  results: {
    banner: 'The server greets in time and accepts more sessions',
    TLS: 'The server offers TLS with a trusted certificate (unless `tls: off`)',
  },
  settings: { tls, latency },
  observe: (session, _, { step }) => session.stages(step),
  evaluate: (stage, settings) =>
    'chain' in stage ? evaluateEncryption(stage, settings.tls) : evaluateBanner(stage, settings.latency),
})

function evaluateBanner({ address, code, text, ms: value }: FtpBanner, threshold: Threshold): Result<'banner'> {
  if (code === 220)
    return atMost({ check: 'banner', what: `${address} greeted with ${text} in`, value, unit: 'duration', threshold })
  if (code === 421) {
    const details = [
      listConnections(address),
      'check its session limits (total and per address), the open sessions, and whether it is shutting down',
    ]
    return fail('banner', 'refused', `${address} accepts no sessions now: ${text}`, { details })
  }
  if (code === 120) return fail('banner', 'refused', `${address} is not ready yet: ${text}`)
  return fail('banner', 'protocol', `${address} greeted with ${text} instead of 220`)
}

function evaluateEncryption({ address, chain, distrust }: FtpEncryption, mode: TlsMode): Result<'TLS'> {
  if (distrust !== undefined) return fail('TLS', 'tls', distrust, { details: ['no credentials were sent'] })
  const how = mode === 'explicit' ? 'accepts AUTH TLS and ' : ''
  return ok(
    'TLS',
    `${address} ${how}speaks ${chain.protocol}, certificate ${chain.pin ? trustDecision(chain) : 'trusted'}`,
  )
}

export const certificate = certificateCheck({
  depth: 'Standard',
  setting: validity,
  chain: ({ chain }: FtpSession) => chain,
})

export const signIn = check({
  depth: 'Standard',
  results: { 'sign-in': 'The account can sign in, in time' },
  settings: { username, insecureFtp, latency },
  applies: ({ isOpen }, settings) => isOpen && settings.username !== undefined,
  observe: (session, settings) => session.signIn(settings.username ?? '', settings.insecureFtp),
  evaluate({ address, username: account, isEncrypted, ms: value }, { latency: threshold }) {
    const what = `signed in to ${address} as ${quote(account, 64)}${isEncrypted ? '' : ' (unencrypted)'} in`
    return atMost({ check: 'sign-in', what, value, unit: 'duration', threshold })
  },
})

export const workingFolder = check({
  depth: 'Standard',
  results: { PWD: 'The session has a working folder' },
  applies: ({ isSignedIn }) => isSignedIn,
  observe: (session) => session.workingFolder(),
  evaluate: ({ address, folder, reply }) =>
    folder === undefined
      ? fail('PWD', 'protocol', `${address} answered PWD with ${reply}`)
      : ok('PWD', `the working folder is ${quote(folder, 120)}`),
})

/** Speaks FTP as far as the mode allows. Writes only its own file, and only with `allowWrites`. */
export default networkKind({
  name: 'ftp',
  title: 'An FTP or FTPS server accepts sign-ins, and its data connections work',
  exposure:
    'Reads and lists what the account may read; with probeFolder it also writes and deletes there. Without TLS the password crosses the network in clear text.',
  recognition: [
    {
      name: 'ftp',
      is: (reply, isStandardPort) =>
        /^220[ -]/.test(firstLine(reply)) && (isStandardPort || /ftp|filezilla/i.test(firstLine(reply))),
      // A banner may contain the time or the number of clients.
      pool: 'alike',
      propose: async (server, name) =>
        openToAll('ftp', server, name, await encryptionOf(server, { question: 'FEAT', upgrade: 'explicit' })),
    },
  ],
  preload: loadFtpLists,
  optionalParts: [
    {
      part: 'AUTH TLS',
      unasked: 'The setting `tls` demands it, and any other answer than 234 ends the run (RFC 4217, 4)',
    },
    { part: 'FEAT', unasked: 'A server without it answers 500 or 502 (RFC 2389, 3.2)' },
    { part: 'EPSV', unasked: 'A server without it answers 500 or 502, and PASV follows (RFC 2428, 3)' },
    {
      part: 'MDTM',
      unasked: 'A server without it answers 500 or 502 (RFC 3659, 3.1); sent only where a listing has no dates',
    },
    { part: 'OPTS UTF8 ON', after: 'FEAT lists UTF8' },
    { part: 'MLSD', after: 'FEAT lists MLST or MLSD' },
  ],
  cost: {
    unit: 'commands',
    Basic: [1, 1],
    Standard: [1, 1],
    Advanced: [1, 1],
    adds: [
      { setting: 'username', from: 'Standard', connections: 2, requests: 8, signIns: 1 },
      { setting: 'folder', from: 'Advanced', connections: 1, requests: 6 },
      { setting: 'allowWrites', from: 'Advanced', connections: 5, requests: 17 },
    ],
    besides: 'Each listing and each file has a data connection, which is included.',
  },
  settings: ftpSettings,
  target: (settings) => ({ host: settings.host, port: ftpPortOf(settings) }),
  signsIn: ({ username, password }, mode) =>
    username !== undefined && includes(mode, 'Standard')
      ? { account: username, secrets: [password], result: 'sign-in' }
      : undefined,
  validate: validateFtp,
  prepare: readAccount,
  connect: { results: {}, firstStep: ({ tls }) => stagesOf[tls][0], open: FtpSession.open },
  checks: [
    greeting,
    certificate,
    signIn,
    workingFolder,
    extendedPassive,
    classicPassive,
    dataConnection,
    ...folderChecks,
  ],
})
