import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerCertificate } from './certs.ts'
import { startDaemon } from './own-daemon.ts'
import { findProgram, freePort, remove, serverFolder } from './server.ts'

const program = findProgram('dovecot')
export const dovecotMissing =
  program === undefined
    ? 'Dovecot (dovecot-imapd, dovecot-pop3d) is not installed'
    : process.getuid?.() === 0
      ? undefined
      : 'Dovecot needs root for its accounts'

export const dovecotPassword = 'correct_horse'

/** A real Dovecot on free ports of 127.0.0.1 for IMAP and POP3 with STARTTLS. Every user has `dovecotPassword`. */
export async function startDovecot({ cert, key }: ServerCertificate) {
  const folder = serverFolder('dovecot')
  const [imap, pop3] = [await freePort(), await freePort()]
  mkdirSync(join(folder, 'mail'), { mode: 0o777 })
  writeFileSync(join(folder, 'cert.pem'), cert)
  writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 })
  const login = (name: string, port: number): string =>
    `service ${name}-login {\n inet_listener ${name} {\n port = ${port}\n }\n inet_listener ${name}s {\n port = 0\n }\n}\n`
  const config = join(folder, 'dovecot.conf')
  writeFileSync(
    config,
    `base_dir = ${folder}/run\nstate_dir = ${folder}/state\nlog_path = /dev/stderr\nprotocols = imap pop3\nlisten = 127.0.0.1
ssl = yes\nssl_cert = <${folder}/cert.pem\nssl_key = <${folder}/key.pem\ndisable_plaintext_auth = yes\nauth_mechanisms = plain login
mail_location = maildir:${folder}/mail/%u\nfirst_valid_uid = 1
${login('imap', imap)}${login('pop3', pop3)}
passdb {\n driver = static\n args = password=${dovecotPassword}\n}
userdb {\n driver = static\n args = uid=nobody gid=nogroup home=${folder}/mail/%u\n}\n`,
  )
  const { stop, log, freeze, thaw } = await startDaemon(program ?? '', ['-F', '-c', config], imap)
  return {
    imap,
    pop3,
    log,
    freeze,
    thaw,
    remove: async () => {
      await stop()
      remove(folder)
    },
  }
}
