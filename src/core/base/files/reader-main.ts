import { serveTasks } from './serve.ts'

// The main program of the reader process.
serveTasks()
