import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'

/** P1: OWASP's first choice of argon2id. Memory in KiB. */
const wanted = { memory: 19_456, passes: 2, parallelism: 1, saltLength: 16, tagLength: 32 } as const

/** What a stored hash may cost: one from elsewhere must not take this machine down. */
const bounds = { memory: 1_048_576, passes: 10, parallelism: 16, saltLength: 64, tagLength: 64 } as const
const least = { saltLength: 8, tagLength: 16 } as const

export type Phc = {
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
  readonly salt: Buffer
  readonly tag: Buffer
}

const shape = /^\$argon2id\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,9})\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$/

/** Reads a PHC string; undefined for another algorithm, a damaged string and costs out of bounds. */
export function readPhc(text: string): Phc | undefined {
  const found = shape.exec(text)
  if (!found) return undefined
  const [memory, passes, parallelism] = found.slice(1, 4).map(Number) as [number, number, number]
  const [salt, tag] = found.slice(4).map((part) => Buffer.from(part, 'base64')) as [Buffer, Buffer]
  const payable =
    parallelism >= 1 &&
    parallelism <= bounds.parallelism &&
    passes >= 1 &&
    passes <= bounds.passes &&
    memory >= 8 * parallelism &&
    memory <= bounds.memory
  const sized =
    salt.length >= least.saltLength &&
    salt.length <= bounds.saltLength &&
    tag.length >= least.tagLength &&
    tag.length <= bounds.tagLength
  return payable && sized ? { memory, passes, parallelism, salt, tag } : undefined
}

export const writePhc = ({ memory, passes, parallelism, salt, tag }: Phc): string =>
  `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/={1,2}$/, '')

/** The PHC string of a password, in the parameters of P1. */
export async function hashPassword(password: string): Promise<string> {
  const blank = { ...wanted, salt: randomBytes(wanted.saltLength), tag: Buffer.alloc(wanted.tagLength) }
  return writePhc({ ...blank, tag: await tagOf(password, blank) })
}

export async function matches(password: string, phc: Phc): Promise<boolean> {
  return timingSafeEqual(await tagOf(password, phc), phc.tag)
}

/** True when the hash was made with other parameters than today's. */
export const outdated = (phc: Phc): boolean =>
  phc.memory !== wanted.memory ||
  phc.passes !== wanted.passes ||
  phc.parallelism !== wanted.parallelism ||
  phc.salt.length !== wanted.saltLength ||
  phc.tag.length !== wanted.tagLength

/** A hash that no password has, at the cost of a real one (P2). */
export const dummyPhc = (): Phc => ({
  ...wanted,
  salt: randomBytes(wanted.saltLength),
  tag: randomBytes(wanted.tagLength),
})

function tagOf(password: string, phc: Phc): Promise<Buffer> {
  const { memory, passes, parallelism, salt, tag } = phc
  return new Promise((resolve, reject) => {
    argon2(
      'argon2id',
      { message: Buffer.from(password, 'utf8'), nonce: salt, memory, passes, parallelism, tagLength: tag.length },
      (error, made) => (error ? reject(error) : resolve(made)),
    )
  })
}
