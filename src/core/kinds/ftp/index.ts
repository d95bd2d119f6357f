import {
  atAddress,
  atMost,
  evaluateExpiry,
  evaluateProblem,
  evaluateUnreached,
  fail,
  includes,
  monitorKind,
  ok,
  type Result,
} from '../../engine/index.ts'
import { evaluateBacklog, evaluateTrip, folderChecks } from '../../folders/index.ts'
import { quoted } from '../../net/text.ts'
import { loadFtpLists } from './list.ts'
import type { Banner } from './open.ts'
import { evaluatePassive } from './passive.ts'
import { type FtpSettings, ftpContradiction, ftpSettings } from './settings.ts'
import { type FtpSeen, portOf, visitFtp } from './visit.ts'

export { loadFtpLists } from './list.ts'
export { type FtpSettings, ftpSettings } from './settings.ts'
export { type FtpSeen, portOf, visitFtp } from './visit.ts'

/** Speaks FTP up to what the mode allows. Writes only its own file, and only with `allowWrites`. */
export default monitorKind({
  name: 'ftp',
  title: 'An FTP or FTPS server lets in, and its data connections work',
  preload: loadFtpLists,
  settings: ftpSettings,
  checks: [
    { name: 'banner', depth: 'Basic', doc: 'The server greets, in time, and lets more sessions in' },
    { name: 'TLS', depth: 'Basic', doc: 'It offers TLS (unless `tls: off`), with a certificate that is trusted' },
    { name: 'certificate', depth: 'Standard', doc: 'Every certificate of the chain stays valid long enough' },
    { name: 'sign-in', depth: 'Standard', doc: 'The account is let in, in time' },
    { name: 'PWD', depth: 'Standard', doc: 'The session is in a folder' },
    { name: 'EPSV', depth: 'Standard', doc: 'A listing comes over a data connection made by EPSV, in time' },
    {
      name: 'PASV',
      depth: 'Standard',
      doc: 'A listing comes over a data connection made by PASV, in time; not over IPv6',
    },
    {
      name: 'data connection',
      depth: 'Standard',
      doc: 'Told when the server offers no passive data connection at all',
    },
    ...folderChecks,
  ],
  target: (given) => ({ host: given.host, port: portOf(given) }),
  signsIn: (given, mode) => given.username !== undefined && includes(mode, 'Standard'),
  validate: ftpContradiction,
  observe: visitFtp,
  evaluate: (seen: FtpSeen, given): Result | readonly Result[] => {
    switch (seen.see) {
      case 'banner':
        return evaluateBanner(seen, given)
      case 'TLS': {
        const { address, chain, distrust } = seen
        const how = given.tls === 'explicit' ? 'accepts AUTH TLS and ' : ''
        return distrust === undefined
          ? ok('TLS', `${address} ${how}speaks ${chain.protocol}, trusted`, { address })
          : fail('TLS', 'tls', distrust, { address, details: ['nothing was sent to it'] })
      }
      case 'certificate':
        return evaluateExpiry('certificate', seen.chain, given.certificate)
      case 'signed in': {
        const what = `signed in at ${seen.address} as ${quoted(seen.as, 64)}${seen.tls ? '' : ', unencrypted,'} in`
        return timed('sign-in', what, seen.ms, given, seen.address)
      }
      case 'PWD':
        return seen.folder === undefined
          ? fail('PWD', 'protocol', `${seen.address} answered PWD with ${seen.told}`, { address: seen.address })
          : ok('PWD', `the session is in ${quoted(seen.folder, 120)}`, { address: seen.address })
      case 'passive':
        return evaluatePassive(seen, given)
      case 'no way':
        return fail('data connection', 'protocol', `${seen.address} offers no passive data connection`, {
          address: seen.address,
        })
      case 'backlog':
        return atAddress(seen.address, evaluateBacklog(seen, given))
      case 'trip':
        return atAddress(seen.address, evaluateTrip(seen.trip, given.throughput))
      case 'problem':
        return evaluateProblem(seen)
      case 'unreached':
        return evaluateUnreached(seen)
    }
  },
})

const timed = (
  check: string,
  what: string,
  value: number,
  { latency: threshold }: FtpSettings,
  address: string,
): Result => atMost({ check, what, value, unit: 'duration', threshold, address })

function evaluateBanner({ address, code, said, ms }: Banner, given: FtpSettings): Result {
  if (code === 220) return timed('banner', `${address} said ${said} in`, ms, given, address)
  if (code === 421) {
    const details = [
      'look: its limits of sessions (in all, and for one address), who holds them, and whether it is shutting down',
    ]
    return fail('banner', 'refused', `${address} lets nobody in now: ${said}`, { address, details })
  }
  if (code === 120) return fail('banner', 'refused', `${address} is not ready yet: ${said}`, { address })
  return fail('banner', 'protocol', `${address} greeted with ${said} instead of 220`, { address })
}
