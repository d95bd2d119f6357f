import { type TaskName, tasks } from './tasks.ts'

/** One line that the reader process gets. */
export type ReaderQuestion = { readonly id: number; readonly task: TaskName; readonly input: unknown }
/** One line that it answers with, in any order. */
export type ReaderAnswer = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly error: { readonly message: string; readonly code?: string | undefined } }
)

/**
 * The side of the reader process: runs every task that arrives on standard input, many at once, and writes their
 * answers. Ends with its parent, when the input ends.
 */
export function serveTasks(): void {
  let rest = ''
  process.stdin.setEncoding('utf8')
  process.stdin.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) void answer(JSON.parse(line) as ReaderQuestion)
  })
  // Not `process.exit`, which waits for threads that hang.
  process.stdin.once('end', () => process.kill(process.pid, 'SIGKILL'))
}

async function answer({ id, task, input }: ReaderQuestion): Promise<void> {
  const answered = await (tasks[task] as (input: unknown) => Promise<unknown>)(input).then(
    (value): ReaderAnswer => ({ id, value }),
    (error: NodeJS.ErrnoException): ReaderAnswer => ({ id, error: { message: error.message, code: error.code } }),
  )
  process.stdout.write(`${JSON.stringify(answered)}\n`)
}
