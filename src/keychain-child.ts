import { readSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { answerQuestion, type KeychainQuestion } from './cli/keychain/answer.ts'

/**
 * The main program of the process that accesses the keychain: one request, one reply. It is killed when it takes too
 * long. It also ends itself with its parent, even while the library blocks the main thread: standard input closes then.
 */
const dieWithParent = `
const { readSync } = require('node:fs')
for (let more = 1; more > 0; ) {
  try {
    more = readSync(0, Buffer.alloc(64))
  } catch (error) {
    more = error.code === 'EAGAIN' || error.code === 'EINTR' ? 1 : 0
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  }
}
process.kill(process.pid, 'SIGKILL')
`

/** Reads without `process.stdin`, which would take the input away from the watching thread. */
function readLine(): string {
  const chunks: Buffer[] = []
  for (;;) {
    const chunk = Buffer.alloc(65_536)
    const length = readSync(0, chunk)
    chunks.push(chunk.subarray(0, length))
    if (length === 0 || chunk.subarray(0, length).includes(0x0a)) return Buffer.concat(chunks).toString('utf8')
  }
}

async function main(): Promise<void> {
  const question = JSON.parse(readLine()) as KeychainQuestion
  new Worker(dieWithParent, { eval: true }).unref()
  const keyring = await import('@napi-rs/keyring')
  process.stdout.write(`${JSON.stringify(answerQuestion(keyring, question))}\n`)
}
void main()
