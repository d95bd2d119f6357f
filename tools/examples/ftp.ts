import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificates, opensslMissing } from '../../test/support/servers/certs.ts'
import { deafPort, pasv, scriptedFtp } from '../../test/support/servers/ftp-server.ts'
import { sshdMissing, startSshd } from '../../test/support/servers/sshd.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../../test/support/servers/vsftpd.ts'
import { during, type Example } from './example.ts'

export const ftp: Example = {
  type: 'Ftp',
  title: 'File transfer server',
  meaning: 'An FTP server, with TLS or without, or an SFTP server. The name leaves no doubt.',
  peers:
    'vsftpd with TLS and OpenSSH with its internal SFTP server, both real. The firewall of the first failure is **simulated**: a scripted FTP server names a port that swallows connection attempts.',
  missing: vsftpdMissing ?? sshdMissing ?? opensslMissing(),
  show: (stage) =>
    during(async (onEnd) => {
      const certificates = makeCertificates()
      onEnd(certificates.remove)
      const vsftpd = await startVsftpd({ certificate: certificates.good })
      onEnd(vsftpd.remove)
      const expired = await startVsftpd({ certificate: certificates.expired })
      onEnd(expired.remove)
      const sshd = await startSshd()
      onEnd(sshd.remove)
      const firewall = await deafPort('127.0.0.1')
      onEnd(firewall.close)
      const blocked = await scriptedFtp({
        answers: { PASV: pasv('127.0.0.1', firewall.port), EPSV: `229 Extended passive (|||${firewall.port}|)` },
      })
      onEnd(blocked.close)
      for (const [real, label] of [
        [vsftpd.port, 12_121],
        [expired.port, 12_122],
        [blocked.port, 12_123],
        [sshd.port, 12_222],
        [firewall.port, 50_021],
      ] as const) {
        stage.port(real, label)
      }
      stage.replace(/(?<=PASV returned 127\.0\.0\.1:|EPSV returned port )\d{4,5}/, '50017')
      stage.replace(sshd.hostKey, `SHA256:${'k'.repeat(43)}`)
      stage.replace(/\b\d+ (?:entry|entries)(?= of)/, '9 entries')
      stage.file('ftp', vsftpdPassword)
      stage.file('sftp-key', sshd.privateKey)
      const caFile = stage.file('ca.pem', certificates.ca)
      const text = (port: number, hostKey = sshd.hostKey): string => `types:
  Ftp:
    host: false
    monitors:
      - kind: ftp
        name: deliveries
        host: 127.0.0.1
        port: ${port}
        caFile: ${caFile}
        username: ftp
        password: {file: ftp}
        folder: /incoming              # its oldest file: 15 min is a warning, 1 h a failure
        allowWrites: true              # a file svc-probe-….tmp: written, read back, renamed, deleted
        probeFolder: incoming
      - kind: sftp
        name: archive
        host: 127.0.0.1
        port: ${sshd.port}
        hostKey: [${hostKey}]
        username: ${sshd.user}
        privateKey: {file: sftp-key}
`
      await stage.yaml(text(vsftpd.port))
      await stage.list()
      await stage.green()

      await stage.red('The passive ports are blocked', {
        happened:
          'The server lets in, but connection attempts to its passive port are swallowed, as by a firewall that knows port 21 only: the fault that is met most. The sign-in took milliseconds and each data connection ran into its time, so the message says that it is not the account.',
        yaml: text(blocked.port)
          .replace(/ {8}caFile: .*\n/, '        tls: off                       # the scripted server has none\n')
          .replace(/ {8}(folder|allowWrites|probeFolder): .*\n/g, ''),
        says: [/timed out after/, /not the account/],
      })

      await stage.red('The certificate has expired', {
        happened:
          'vsftpd was started with a certificate that expired two days ago. Nothing is sent to a server that cannot be trusted, so that nobody signed in.',
        yaml: text(expired.port),
        says: [/expired/],
      })

      const waiting = join(vsftpd.incoming, 'promo-0412.mov')
      writeFileSync(waiting, 'x')
      const old = new Date(Date.now() - 2 * 3_600_000)
      utimesSync(waiting, old, old)
      await stage.red('A delivery that nobody takes, and a host key that has changed', {
        happened:
          'A file in the drop folder of vsftpd was two hours old. And `hostKey` named another key than the SFTP server shows, as after a new installation, or with somebody in between: nobody signed in there.',
        yaml: text(vsftpd.port, `SHA256:${'A'.repeat(43)}`),
        says: [/promo-0412\.mov/, /which is not in hostKey/],
      })
    }),
}
