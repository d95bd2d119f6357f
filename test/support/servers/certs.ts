import { execFileSync, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The missing program of `makeCertificates`, for `suiteWith`. */
export const opensslMissing = (): string | undefined =>
  spawnSync('openssl', ['version']).status === 0 ? undefined : 'the program openssl is not installed'

/** The certificate and key of a TLS server: `cert` is the chain that it shows, its own certificate first. */
export type ServerCertificate = {
  readonly key: string
  readonly cert: string
  /** The OCSP answer that the server sends with it. */
  readonly staple?: Uint8Array
}

export type Certificates = {
  /** The root that signed everything but `selfSigned`, as a file and as PEM. */
  readonly caFile: string
  readonly ca: string
  /** For localhost, svc.test and 127.0.0.1, good for 90 days, by way of an intermediate. */
  readonly good: ServerCertificate
  /** The same, but the server shows only its own certificate. */
  readonly withoutIntermediate: ServerCertificate
  readonly expired: ServerCertificate
  /** A good certificate under an intermediate that expired. */
  readonly expiredIntermediate: ServerCertificate
  readonly notYetValid: ServerCertificate
  /** For elsewhere.test only. */
  readonly otherHost: ServerCertificate
  /** Names svc.test in its subject only, as private CAs and old appliances issue them. */
  readonly commonNameOnly: ServerCertificate
  readonly selfSigned: ServerCertificate
  /** `selfSigned` as a caFile. */
  readonly selfSignedFile: string
  /** Issued for 90 days. */
  readonly fiveDays: ServerCertificate
  readonly twoDays: ServerCertificate
  /** Issued for 6 days, of which 3, 1 and 0.2 are left. */
  readonly shortLived: ServerCertificate
  readonly shortLivedLate: ServerCertificate
  readonly shortLivedEnding: ServerCertificate
  /** Requires OCSP stapling (must-staple); `stapled` comes with an answer of the CA. */
  readonly mustStaple: ServerCertificate
  readonly stapled: ServerCertificate
  /** Good, but for the purpose of a client. */
  readonly forClients: ServerCertificate
  /** Signed by `good`, which is not a CA. */
  readonly underLeaf: ServerCertificate
  /** Under an intermediate below another one that may have none below it. */
  readonly tooDeep: ServerCertificate
  /** Good, and the server adds an edition of the root that has expired, or ends in 2.5 days. */
  readonly withOldRoot: ServerCertificate
  readonly withEndingRoot: ServerCertificate
  /** A good certificate whose subject carries escape sequences. */
  readonly hostile: ServerCertificate
  readonly remove: () => void
}

const dayMs = 86_400_000
const extensions = {
  ca: 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n',
  lowestCa: 'basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\n',
  client: 'basicConstraints=critical,CA:FALSE\nextendedKeyUsage=clientAuth\n',
  server: (names: string) =>
    `basicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n${names === '' ? '' : `subjectAltName=${names}\n`}`,
}
const ours = 'DNS:localhost,DNS:svc.test,IP:127.0.0.1'

/**
 * Real certificate chains, made by the `openssl` program in a folder of their own. `openssl ca` is
 * what can date a certificate in the past, with any openssl or LibreSSL. Each takes two processes and is made when it
 * is first read: most tests need one.
 */
export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'svc-certs-'))
  const file = (name: string): string => join(folder, name)
  const write = (name: string, text: string): string => {
    writeFileSync(file(name), text)
    return file(name)
  }
  const openssl = (...args: readonly string[]): string => {
    try {
      return execFileSync('openssl', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    } catch (error) {
      throw new Error(`openssl ${args[0]}: ${(error as { stderr?: string }).stderr ?? String(error)}`)
    }
  }
  const config = write(
    'ca.cnf',
    `[ca]\ndefault_ca=all\n[all]\ndatabase=${file('index.txt').replaceAll('\\', '/')}\nrand_serial=yes\nunique_subject=no\n` +
      'new_certs_dir=.\ndefault_md=sha256\npolicy=any\nemail_in_dn=no\n[any]\ncommonName=supplied\n[req]\ndistinguished_name=dn\n[dn]\n',
  )
  write('index.txt', '')
  const day = (days: number): string =>
    `${new Date(Date.now() + days * dayMs).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`

  type Issuer = { readonly name: string } | 'self'
  const issue = (
    name: string,
    common: string,
    extension: string,
    issuer: Issuer,
    from: number,
    to: number,
    as = name,
  ) => {
    const key = file(`${as}.key`)
    if (as === name) writeFileSync(key, newKey())
    openssl(
      'req',
      '-new',
      '-config',
      config,
      '-key',
      key,
      '-subj',
      `/CN=${common}`,
      '-utf8',
      '-out',
      file(`${name}.csr`),
    )
    const signer =
      issuer === 'self'
        ? ['-selfsign', '-keyfile', key]
        : ['-cert', file(`${issuer.name}.pem`), '-keyfile', file(`${issuer.name}.key`)]
    const dates = ['-startdate', day(from), '-enddate', day(to)]
    const extfile = write(`${name}.ext`, extension)
    openssl(
      'ca',
      '-batch',
      '-notext',
      '-config',
      config,
      ...signer,
      ...dates,
      '-extfile',
      extfile,
      '-utf8',
      '-in',
      file(`${name}.csr`),
      '-out',
      file(`${name}.pem`),
    )
    return { name, key: readFileSync(key, 'utf8'), pem: readFileSync(file(`${name}.pem`), 'utf8') }
  }
  const root = issue('root', 'Svc Test Root', extensions.ca, 'self', -1000, 1000)
  const middle = issue('middle', 'Svc Test Issuer', extensions.ca, root, -900, 900)
  const server = (name: string, names: string, from: number, to: number, by = middle, common = 'svc.test') => {
    const made = issue(name, common, extensions.server(names), by, from, to)
    return { key: made.key, cert: made.pem + by.pem, alone: made.pem }
  }
  const withExtension = (name: string, extension: string, by = middle) => {
    const { key, pem } = issue(name, 'svc.test', extension, by, -1, 90)
    return { key, cert: pem + by.pem }
  }
  const good = once(() => server('good', ours, -1, 90))
  const selfSigned = once(() => {
    const { key, pem } = issue('self', 'self.test', extensions.server(ours), 'self', -1, 90)
    return { key, cert: pem }
  })
  const expired = once(() => server('expired', ours, -90, -2))
  const expiredIntermediate = once(() => {
    const old = issue('old-middle', 'Svc Old Issuer', extensions.ca, root, -900, -7)
    return server('under-old', ours, -30, 60, old)
  })
  const notYetValid = once(() => server('early', ours, 2, 90))
  const otherHost = once(() => server('wrong', 'DNS:elsewhere.test', -1, 90))
  const commonNameOnly = once(() => server('plain', '', -1, 90))
  const fiveDays = once(() => server('five', ours, -84.5, 5.5))
  const twoDays = once(() => server('two', ours, -87.5, 2.5))
  const shortLived = once(() => server('short', ours, -3, 3))
  const shortLivedLate = once(() => server('short-late', ours, -5, 1))
  const shortLivedEnding = once(() => server('short-ending', ours, -5.8, 0.2))
  const mustStaple = once(() => withExtension('must-staple', `${extensions.server(ours)}tlsfeature=status_request\n`))
  const stapled = once(() => {
    const { key, cert } = mustStaple()
    const ca = ['-CA', file('middle.pem'), '-issuer', file('middle.pem')]
    const signer = ['-rsigner', file('middle.pem'), '-rkey', file('middle.key')]
    const validity = ['-ndays', '5', '-respout', file('staple.der')]
    openssl('ocsp', '-index', file('index.txt'), ...ca, ...signer, ...validity, '-cert', file('must-staple.pem'))
    return { key, cert, staple: readFileSync(file('staple.der')) }
  })
  const forClients = once(() => withExtension('client', `${extensions.client}subjectAltName=${ours}\n`))
  const underLeaf = once(() => {
    good()
    const leaf = { name: 'good', key: good().key, pem: good().alone }
    const { key, pem } = issue('under-leaf', 'svc.test', extensions.server(ours), leaf, -1, 60)
    return { key, cert: pem + good().cert }
  })
  const tooDeep = once(() => {
    const lowest = issue('lowest', 'Svc Lowest Issuer', extensions.lowestCa, middle, -30, 300)
    const below = issue('below', 'Svc Issuer Below', extensions.ca, lowest, -20, 200)
    const { key, pem } = issue('too-deep', 'svc.test', extensions.server(ours), below, -1, 60)
    return { key, cert: pem + below.pem + lowest.pem + middle.pem }
  })
  const withRoot = (name: string, from: number, to: number): ServerCertificate => {
    const edition = issue(name, 'Svc Test Root', extensions.ca, 'self', from, to, 'root')
    return { key: good().key, cert: good().cert + edition.pem }
  }
  const withOldRoot = once(() => withRoot('old-root', -2000, -10))
  const withEndingRoot = once(() => withRoot('ending-root', -2000, 2.5))
  const hostile = once(() => server('hostile', ours, -87.5, 2.5, middle, '\x1b[2Jevil\x07\x1b[31m'))
  return {
    caFile: file('root.pem'),
    ca: root.pem,
    get good() {
      return good()
    },
    get withoutIntermediate() {
      return { key: good().key, cert: good().alone }
    },
    get expired() {
      return expired()
    },
    get expiredIntermediate() {
      return expiredIntermediate()
    },
    get notYetValid() {
      return notYetValid()
    },
    get otherHost() {
      return otherHost()
    },
    get commonNameOnly() {
      return commonNameOnly()
    },
    get selfSigned() {
      return selfSigned()
    },
    get selfSignedFile() {
      selfSigned()
      return file('self.pem')
    },
    get fiveDays() {
      return fiveDays()
    },
    get twoDays() {
      return twoDays()
    },
    get shortLived() {
      return shortLived()
    },
    get shortLivedLate() {
      return shortLivedLate()
    },
    get shortLivedEnding() {
      return shortLivedEnding()
    },
    get mustStaple() {
      return mustStaple()
    },
    get stapled() {
      return stapled()
    },
    get forClients() {
      return forClients()
    },
    get underLeaf() {
      return underLeaf()
    },
    get tooDeep() {
      return tooDeep()
    },
    get withOldRoot() {
      return withOldRoot()
    },
    get withEndingRoot() {
      return withEndingRoot()
    },
    get hostile() {
      return hostile()
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const newKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey.export({ type: 'sec1', format: 'pem' }) as string

/** Makes a value when it is first asked for. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
