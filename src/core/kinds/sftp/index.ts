import {
  atAddress,
  atMost,
  evaluateProblem,
  evaluateUnreached,
  fail,
  includes,
  monitorKind,
  ok,
  type Result,
} from '../../engine/index.ts'
import { evaluateBacklog, evaluateTrip, folderChecks } from '../../folders/index.ts'
import { showDuration } from '../../format.ts'
import { count, quoted } from '../../net/text.ts'
import type { Greeting, HostKey } from './open.ts'
import { loadSsh2 } from './open.ts'
import { type SftpSettings, sftpContradiction, sftpSettings } from './settings.ts'
import { type SftpSeen, speaksSsh, visitSftp } from './visit.ts'

/** Speaks SSH up to what the mode allows, and signs in only to a server whose key is known. */
export default monitorKind({
  name: 'sftp',
  title: 'An SFTP server is the right one, lets in and lists',
  preload: loadSsh2,
  settings: sftpSettings,
  checks: [
    { name: 'banner', depth: 'Basic', doc: 'The server greets as SSH 2 does, in time' },
    { name: 'host key', depth: 'Standard', doc: 'Its key is one of `hostKey`; nobody signs in to any other' },
    { name: 'sign-in', depth: 'Standard', doc: 'The account is let in, in time' },
    { name: 'listing', depth: 'Standard', doc: 'SFTP starts and lists the folder where a sign-in ends, in time' },
    ...folderChecks,
  ],
  target: (given) => ({ host: given.host, port: given.port }),
  signsIn: (given, mode) => given.username !== undefined && includes(mode, 'Standard'),
  validate: sftpContradiction,
  observe: visitSftp,
  evaluate: (seen: SftpSeen, given): Result | readonly Result[] => {
    switch (seen.see) {
      case 'banner':
        return evaluateGreeting(seen, given)
      case 'host key':
        return evaluateHostKey(seen.key, seen.address, given)
      case 'signed in':
        return timed('sign-in', `signed in at ${seen.address} as ${quoted(seen.as, 64)} in`, seen, given)
      case 'listing': {
        const many = `${seen.more ? 'more than ' : ''}${count(seen.entries, 'entry', 'entries')}`
        return timed('listing', `${many} of ${quoted(seen.folder, 120)} listed in`, seen, given)
      }
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

type Timed = { readonly ms: number; readonly address: string }
const timed = (check: string, what: string, { ms, address }: Timed, { latency }: SftpSettings): Result =>
  atMost({ check, what, value: ms, unit: 'duration', threshold: latency, address })

function evaluateGreeting(seen: Greeting, given: SftpSettings): Result {
  const { address, ended, said, ms } = seen
  if (speaksSsh(seen)) return timed('banner', `${address} said ${said} in`, seen, given)
  const nothing = said === '""'
  if (ended === 'met') return fail('banner', 'protocol', `${address} said ${said}: not version 2 of SSH`, { address })
  if (ended === 'silent') {
    const half = nothing ? 'accepted the connection and then said nothing' : `said ${said} and no more`
    return fail('banner', 'timeout', `${address} ${half} for ${showDuration(ms)}`, { address })
  }
  if (nothing) {
    const details = ['look: its limit of sessions that are not signed in (MaxStartups), and who is kept out by address']
    return fail('banner', 'refused', `${address} hung up before it said anything`, { address, details })
  }
  return fail('banner', 'protocol', `${address} does not answer as SSH does: it said ${said}`, { address })
}

function evaluateHostKey({ type, fingerprint }: HostKey, address: string, given: SftpSettings): Result {
  const shown = `${address} showed ${type} ${fingerprint}`
  const compare = 'compare with what ssh-keygen -lf says of /etc/ssh/ssh_host_*_key.pub on the server itself'
  const more = { address, details: [compare] }
  const known = given.hostKey?.map((print) => print.replace(/=$/, ''))
  if (known?.includes(fingerprint)) return ok('host key', shown, { address })
  if (known !== undefined) {
    const cause = 'a key of another type, a new installation, or somebody in between'
    // The class of a peer that is not who it should be.
    return fail('host key', 'tls', `${shown}, which hostKey does not name: ${cause}; nobody was signed in`, more)
  }
  if (given.username === undefined) return ok('host key', `${shown}; without hostKey it is only told`, { address })
  return fail('host key', 'data', `${shown}, and no hostKey is set: nobody was signed in to an unknown server`, more)
}
