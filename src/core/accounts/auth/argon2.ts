import { argon2 } from 'node:crypto'

/** The input of one hash. Memory in KiB, bytes in base64. */
export type Argon2Input = {
  readonly password: string
  readonly salt: string
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
  readonly tagLength: number
}

/** Makes the tag of argon2id. */
export type TagOf = (input: Argon2Input) => Promise<Buffer>

/** In a thread of libuv's pool, which this process also reads files and resolves names with. */
export const tagHere: TagOf = ({ password, salt, ...parameters }) =>
  new Promise((resolve, reject) => {
    argon2(
      'argon2id',
      { ...parameters, message: Buffer.from(password, 'utf8'), nonce: Buffer.from(salt, 'base64') },
      (error, made) => (error ? reject(error) : resolve(made)),
    )
  })
