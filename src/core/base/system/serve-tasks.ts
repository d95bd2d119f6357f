/** One line that a task process gets. */
export type TaskQuestion = { readonly id: number; readonly task: string; readonly input: unknown }
/** One line that it answers with, in any order. */
export type TaskAnswer = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly error: { readonly message: string; readonly code?: string | undefined } }
)

/** The tasks of a process, by name. Inputs and values are JSON. */
type Tasks = { readonly [name: string]: (input: never) => Promise<unknown> }

/**
 * The side of a task process: runs every task that arrives on standard input, many at once, and writes their
 * answers. Ends with its parent, when the input ends.
 */
export function serveTasks(tasks: Tasks): void {
  let rest = ''
  process.stdin.setEncoding('utf8')
  process.stdin.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) void answer(tasks, JSON.parse(line) as TaskQuestion)
  })
  // Not `process.exit`, which waits for threads that hang.
  process.stdin.once('end', () => process.kill(process.pid, 'SIGKILL'))
}

async function answer(tasks: Tasks, { id, task, input }: TaskQuestion): Promise<void> {
  const answered = await (tasks[task] as (input: unknown) => Promise<unknown>)(input).then(
    (value): TaskAnswer => ({ id, value }),
    (error: NodeJS.ErrnoException): TaskAnswer => ({ id, error: { message: error.message, code: error.code } }),
  )
  process.stdout.write(`${JSON.stringify(answered)}\n`)
}
