import { includes, networkKind } from '../../engine/index.ts'
import { folderChecks } from '../../folders/index.ts'
import { banner, listing, serverKey, signIn } from './checks.ts'
import { readAccount, SftpSession } from './session.ts'
import { connectionSettings, validateSftp } from './settings.ts'
import { loadSsh2 } from './ssh.ts'

/** Speaks SSH up to what the mode allows, and signs in only to a server whose key is known. */
export default networkKind({
  name: 'sftp',
  title: 'An SFTP server is the right one, lets in and lists',
  preload: loadSsh2,
  settings: connectionSettings,
  target: ({ host, port }) => ({ host, port }),
  signsIn: ({ username }, mode) => username !== undefined && includes(mode, 'Standard'),
  validate: validateSftp,
  prepare: readAccount,
  connect: { results: {}, firstStep: () => 'banner', open: SftpSession.open },
  checks: [banner, serverKey, signIn, listing, ...folderChecks],
})
