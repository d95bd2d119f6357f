import { enableCompileCache, flushCompileCache } from 'node:module'
import { compiledCode } from '../program/compiled-code.ts'

// The program of a probe's child process, with its compiled code kept. Who is killed leaves none, and the child is
// killed once it has answered: so before that.
enableCompileCache(compiledCode.NODE_COMPILE_CACHE)
const { stdout } = process
const write = stdout.write.bind(stdout) as (...said: unknown[]) => boolean
stdout.write = ((...messages: unknown[]): boolean => {
  flushCompileCache()
  return write(...messages)
}) as typeof stdout.write
await import('../../../src/core/checks/child/child-main.ts')
