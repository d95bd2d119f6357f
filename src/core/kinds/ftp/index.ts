import { includes, networkKind } from '../../engine/index.ts'
import { folderChecks } from '../../folders/index.ts'
import { certificate, greeting, signIn, workingFolder } from './checks.ts'
import { loadFtpLists } from './list.ts'
import { classicPassive, dataConnection, extendedPassive } from './passive.ts'
import { FtpSession, readAccount, stagesOf } from './session.ts'
import { ftpSettings, portOf, validateFtp } from './settings.ts'

export { loadFtpLists } from './list.ts'
export { ftpSettings, portOf } from './settings.ts'

/** Speaks FTP up to what the mode allows. Writes only its own file, and only with `allowWrites`. */
export default networkKind({
  name: 'ftp',
  title: 'An FTP or FTPS server lets in, and its data connections work',
  preload: loadFtpLists,
  settings: ftpSettings,
  target: (settings) => ({ host: settings.host, port: portOf(settings) }),
  signsIn: ({ username }, mode) => username !== undefined && includes(mode, 'Standard'),
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
