import { judgeProblem } from '../db/problem.ts'
import { includes } from '../engine.ts'
import { judgeBacklog } from '../files/backlog.ts'
import { folderChecks } from '../files/folder-checks.ts'
import { loadFtpLists } from '../files/ftp-list.ts'
import type { Banner } from '../files/ftp-open.ts'
import { judgePassive } from '../files/ftp-passive.ts'
import { type FtpSettings, ftpContradiction, ftpSettings } from '../files/ftp-settings.ts'
import { type FtpSeen, portOf, visitFtp } from '../files/ftp-visit.ts'
import { judgeTrip } from '../files/round-trip.ts'
import { atAddress, atMost, fail, ok } from '../judge.ts'
import { type Finding, monitorKind } from '../monitor.ts'
import { judgeUnreached } from '../probe/addresses.ts'
import { judgeExpiry } from '../probe/certificates.ts'
import { quoted } from '../probe/text.ts'

/** Speaks FTP up to what the mode allows. Writes only its own file, and only with `allowWrites`. */
export default monitorKind({
  kind: 'ftp',
  title: 'An FTP or FTPS server lets in, and its data connections work',
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
  contradiction: ftpContradiction,
  preload: loadFtpLists,
  observe: visitFtp,
  judge: (seen: FtpSeen, given): Finding | readonly Finding[] => {
    switch (seen.see) {
      case 'banner':
        return judgeBanner(seen, given)
      case 'TLS': {
        const { address, chain, distrust } = seen
        const how = given.tls === 'explicit' ? 'accepts AUTH TLS and ' : ''
        return distrust === undefined
          ? ok('TLS', `${address} ${how}speaks ${chain.protocol}, trusted`, { address })
          : fail('TLS', 'tls', distrust, { address, details: ['nothing was sent to it'] })
      }
      case 'certificate':
        return judgeExpiry('certificate', seen.chain, given.certificate)
      case 'signed in': {
        const what = `signed in at ${seen.address} as ${quoted(seen.as, 64)}${seen.tls ? '' : ', unencrypted,'} in`
        return timed('sign-in', what, seen.ms, given, seen.address)
      }
      case 'PWD':
        return seen.folder === undefined
          ? fail('PWD', 'protocol', `${seen.address} answered PWD with ${seen.told}`, { address: seen.address })
          : ok('PWD', `the session is in ${quoted(seen.folder, 120)}`, { address: seen.address })
      case 'passive':
        return judgePassive(seen, given)
      case 'no way':
        return fail('data connection', 'protocol', `${seen.address} offers no passive data connection`, {
          address: seen.address,
        })
      case 'backlog':
        return atAddress(seen.address, judgeBacklog(seen, given))
      case 'trip':
        return atAddress(seen.address, judgeTrip(seen.trip, given.throughput))
      case 'problem':
        return judgeProblem(seen)
      case 'unreached':
        return judgeUnreached(seen)
    }
  },
})

const timed = (
  check: string,
  what: string,
  value: number,
  { latency: threshold }: FtpSettings,
  address: string,
): Finding => atMost({ check, what, value, unit: 'duration', threshold, address })

function judgeBanner({ address, code, said, ms }: Banner, given: FtpSettings): Finding {
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
