import { readSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { answerQuestion } from './entries.ts'
import type { Question } from './question.ts'

/**
 * The whole program of the process that talks to the keychain: one question, one answer. It is killed when it takes too
 * long, and ends itself with its parent, also while the library blocks its main thread: the other end of standard input
 * closes then.
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

/** Read without `process.stdin`, which would take the input away from the watching thread. */
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
  const question = JSON.parse(readLine()) as Question
  new Worker(dieWithParent, { eval: true }).unref()
  const keyring = await import('@napi-rs/keyring')
  process.stdout.write(`${JSON.stringify(answerQuestion(keyring, question))}\n`)
}
void main()
