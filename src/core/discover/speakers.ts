/**
 * How to tell who listens: what it says unasked, or what it answers to the smallest harmless greeting
 * of its protocol. None of these signs in, and none changes anything.
 */
export type Speaker = {
  readonly what: string
  /** Tried first on these ports. */
  readonly usual: readonly number[]
  /** Absent: it speaks first. */
  readonly greeting?: Buffer
  /** The first bytes that it said. */
  readonly is: (heard: Buffer, port: number) => boolean
}

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')
const begins = (text: string) => (heard: Buffer) => heard.toString('latin1').startsWith(text)
const line = (heard: Buffer): string => heard.toString('latin1').split(/\r?\n/, 1)[0] ?? ''

/** PostgreSQL's SSLRequest: answered with one letter before anything else. */
const sslRequest = bytes('00000008 04d2162f')
/** MongoDB's `hello` to `admin`, as OP_MSG. */
const mongoHello = bytes(
  '38000000 01000000 00000000 dd070000 00000000 00 23000000 10 68656c6c6f00 01000000 02 24646200 06000000 61646d696e00 00',
)
/** An LDAP search of the root DSE for nothing (`1.1`), anonymously. */
const rootDse = bytes(
  '30 2a 020101 63 25 0400 0a0100 0a0100 020100 020105 0101ff 87 0b 6f626a656374436c617373 3005 0403 312e31',
)
/** Message 1, and an entry or the end of what was found: never the search itself, come back. */
const foundOne = [bytes('02010164'), bytes('02010165')]
/** The smallest PRELOGIN of TDS: a version, no encryption. */
const prelogin = bytes('12 01 001a 0000 00 00 00 000b 0006 01 0011 0001 ff 000000000000 02')

export const speakers: readonly Speaker[] = [
  { what: 'ssh', usual: [22], is: begins('SSH-') },
  {
    what: 'ftp',
    usual: [21],
    is: (heard, port) => /^220[ -]/.test(line(heard)) && (/ftp|filezilla/i.test(line(heard)) || port === 21),
  },
  {
    what: 'smtp',
    usual: [25, 587],
    is: (heard, port) => /^220[ -]/.test(line(heard)) && (/smtp|mail/i.test(line(heard)) || [25, 587].includes(port)),
  },
  // A handshake of protocol 10, or the error that too many hosts or connections get.
  {
    what: 'mysql',
    usual: [3306],
    is: (heard) => heard.length > 4 && heard[3] === 0 && (heard[4] === 10 || heard[4] === 255),
  },
  {
    what: 'http',
    usual: [80, 8080, 8676, 15_672],
    greeting: Buffer.from('HEAD / HTTP/1.0\r\n\r\n'),
    is: begins('HTTP/'),
  },
  { what: 'postgres', usual: [5432], greeting: sslRequest, is: (heard) => /^[SN]$/.test(heard.toString('latin1')) },
  {
    what: 'redis',
    usual: [6379],
    greeting: Buffer.from('PING\r\n'),
    is: (heard) => /^(?:\+PONG|-NOAUTH|-DENIED)/.test(line(heard)),
  },
  {
    what: 'mongo',
    usual: [27_017],
    greeting: mongoHello,
    is: (heard) => heard.length >= 16 && heard.readUInt32LE(8) === 1 && heard.readUInt32LE(12) === 2013,
  },
  {
    what: 'ldap',
    usual: [389],
    greeting: rootDse,
    is: (heard) => heard[0] === 0x30 && foundOne.some((start) => heard.subarray(2, 12).includes(start)),
  },
  {
    what: 'amqp',
    usual: [5672],
    greeting: Buffer.from('AMQP\0\0\x09\x01', 'latin1'),
    is: (heard) => heard[0] === 1 && heard[1] === 0 && heard[2] === 0,
  },
  { what: 'sqlserver', usual: [1433], greeting: prelogin, is: (heard) => heard[0] === 4 && heard.length > 8 },
]
