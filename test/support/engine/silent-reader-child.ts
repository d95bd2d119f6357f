/** Stands in for a task process: answers `status` with its process id, and `space` never. `realPath` and `argon2id` end it. */
import { createInterface } from 'node:readline'

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, task } = JSON.parse(line) as { readonly id: number; readonly task: string }
  if (task === 'realPath' || task === 'argon2id') process.kill(process.pid, 'SIGKILL')
  if (task === 'status') process.stdout.write(`${JSON.stringify({ id, value: String(process.pid) })}\n`)
  if (task === 'mayWrite')
    setTimeout(() => process.stdout.write(`${JSON.stringify({ id, value: String(process.pid) })}\n`), 400)
})
