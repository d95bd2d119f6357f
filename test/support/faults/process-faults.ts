import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../suite/until.ts'

/** Copies the program sleep to a name of the test's own, under which its processes are found. */
export function sleepNamed(folder: string, name: string): string {
  const program = join(folder, name)
  copyFileSync('/bin/sleep', program)
  return program
}

const started = async (program: string, args: readonly string[]): Promise<ChildProcess> => {
  const child = spawn(program, [...args], { stdio: 'ignore' })
  await once(child, 'spawn')
  return child
}
const end = async (children: readonly ChildProcess[]): Promise<void> => {
  for (const child of children) {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
    child.kill('SIGKILL')
    await ended
  }
}

/** Processes of a program that sleep; resolves with what ends them. */
export async function sleeping(program: string, processes: number): Promise<() => Promise<void>> {
  const children: ChildProcess[] = []
  for (let one = 0; one < processes; one += 1) children.push(await started(program, ['600']))
  return () => end(children)
}

/** A process that sleeps, and a file with its id that is `age` milliseconds old; resolves with what ends both. */
export async function withPidFile(program: string, file: string, age: number): Promise<() => Promise<void>> {
  const child = await started(program, ['600'])
  const written = new Date(Date.now() - age)
  writeFileSync(file, `${child.pid}\n`)
  utimesSync(file, written, written)
  return async () => {
    await end([child])
    rmSync(file)
  }
}

/** A process that SIGSTOP has stopped (state T): it exists and does nothing. */
export async function stoppedProcess(program: string): Promise<() => Promise<void>> {
  const child = await started(program, ['600'])
  child.kill('SIGSTOP')
  await until(() => /^State:\s+T/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8')))
  return () => end([child])
}

/** A process that has ended and whose parent does not collect it (state Z). */
export async function zombieProcess(program: string): Promise<() => Promise<void>> {
  // The shell becomes a sleep that never collects the child it inherits.
  const parent = await started('/bin/sh', ['-c', `"${program}" 0.01 & exec sleep 600`])
  await until(() => {
    const [child = ''] = readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, 'utf8').split(' ')
    return child !== '' && /^State:\s+Z/m.test(readFileSync(`/proc/${child}/status`, 'utf8'))
  })
  return () => end([parent])
}
