import { connect, type Socket } from 'node:net'

/** The bytes that came back on one connection until it ended. */
export type Outcome = {
  /** Of every complete answer, in order: head and body, where `Content-Length` says that all of it came. */
  readonly answers: readonly { readonly status: number; readonly head: string; readonly body: string }[]
  /** The rest: an answer that broke off. */
  readonly rest: string
  /** The error code of the connection, such as ECONNRESET. */
  readonly error: string | undefined
}

/** Collects what a connection receives until it closes. Attach it before anything is sent. */
export function outcomeOf(socket: Socket): Promise<Outcome> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let failure: string | undefined
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      failure = error.code ?? error.message
    })
    socket.on('close', () => resolve({ ...split(Buffer.concat(chunks).toString('latin1')), error: failure }))
  })
}

function split(text: string): Pick<Outcome, 'answers' | 'rest'> {
  const answers: { status: number; head: string; body: string }[] = []
  let rest = text
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    const head = rest.slice(0, end)
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? Number.NaN)
    if (end < 0 || !(rest.length >= end + 4 + length)) return { answers, rest }
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
    answers.push({ status, head, body: rest.slice(end + 4, end + 4 + length) })
    rest = rest.slice(end + 4 + length)
  }
}

/** A connection that is open, with its outcome. */
export async function openConnection(
  port: number,
): Promise<{ readonly socket: Socket; readonly outcome: Promise<Outcome> }> {
  const socket = connect(port, '127.0.0.1')
  const outcome = outcomeOf(socket)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return { socket, outcome }
}

/** Writes, and resolves when the bytes are with the kernel. */
export const write = (socket: Socket, bytes: string): Promise<void> =>
  new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve())))

export const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
