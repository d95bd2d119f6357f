import { createConnection } from 'mysql2/promise'

/** The password of the account `shop`, which the tests create for a program that uses a database. */
export const plainPassword = 'correct horse'

/** The reply to a program that uses the database: `ok`, the error of the server, or `no reply within 2 s`. */
export async function plainReply(port: number, sql: string, user = 'shop'): Promise<string> {
  try {
    const one = await createConnection({ host: '127.0.0.1', port, user, password: plainPassword })
    const reply = one.query(sql).then(
      () => 'ok',
      (error: Error) => error.message,
    )
    const silence = new Promise<string>((resolve) => setTimeout(resolve, 2_000, 'no reply within 2 s'))
    try {
      return await Promise.race([reply, silence])
    } finally {
      one.destroy()
    }
  } catch (error) {
    return (error as Error).message
  }
}
