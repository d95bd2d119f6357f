import { client, resource, startOidc } from '../../test/support/openid/oidc.ts'
import { makeCertificates, opensslMissing } from '../../test/support/servers/certs.ts'
import { dedicated, probe, slapdMissing, startSlapd, suffix } from '../../test/support/servers/slapd.ts'
import { during, type Example } from './example.ts'

export const identity: Example = {
  type: 'Identity',
  title: 'Identity provider',
  meaning: 'What others sign in by: an LDAP directory, Active Directory, an OpenID Connect provider.',
  peers: 'OpenLDAP (slapd) under TLS, and oidc-provider, both real.',
  missing: slapdMissing ?? opensslMissing(),
  show: (stage) =>
    during(async (onEnd) => {
      const certificates = makeCertificates()
      onEnd(certificates.remove)
      const server = await startSlapd({ tls: certificates.good })
      onEnd(server.remove)
      const expired = await startSlapd({ tls: certificates.expired })
      onEnd(expired.remove)
      const provider = await startOidc()
      onEnd(provider.close)
      stage.port(provider.port, 13_000)
      stage.file('svc-probe', client.clientSecret)
      stage.port(server.tlsPort, 10_636)
      stage.port(expired.tlsPort, 10_637)
      stage.file('directory', probe.password)
      stage.file('dedicated', dedicated.password)
      const caFile = stage.file('ca.pem', certificates.ca)
      const text = (url: string): string => `types:
  Identity:
    host: false
    monitors:
      - kind: ldap
        name: directory
        url: ${url}
        caFile: ${caFile}
        username: ${probe.user}
        password: {file: directory}
        base: ${suffix}
        entry: {filter: (uid=probe)}
        refusesWrongPassword:          # an account that nobody uses for anything else
          username: ${dedicated.user}
          password: {file: dedicated}
      - kind: oidc
        name: sign-on
        issuer: ${provider.issuer}
        clientId: ${client.clientId}
        clientSecret: {file: svc-probe}
        resource: ${resource}
`
      await stage.yaml(text(server.ldaps))
      await stage.list()
      await stage.green()

      stage.file('directory', 'mistyped')
      await stage.red('A wrong password', {
        happened:
          'The file `directory` held another password than the directory knows. Nothing but the sign-in failed, and it was tried once.',
        says: [/refused the sign-in/],
      })
      stage.file('directory', probe.password)

      await stage.red('The certificate has expired', {
        happened: 'slapd was started with a certificate that expired two days ago. No password was sent to it.',
        yaml: text(expired.ldaps),
        says: [/expired/],
      })

      stage.file('svc-probe', 'rotated')
      await stage.red('The client secret was changed at the provider', {
        happened: 'The file `svc-probe` held a secret that the provider does not know. Discovery and keys were well.',
        says: [/refused/],
      })
      stage.file('svc-probe', client.clientSecret)

      await server.stop('SIGTERM')
      await stage.red('The directory is gone', {
        happened: 'slapd was ended.',
        says: [/refused the connection/],
        mode: 'Basic',
      })
    }),
}
