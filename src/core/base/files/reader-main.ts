import { serveTasks } from '../system/serve-tasks.ts'
import { tasks } from './tasks.ts'

// The main program of the reader process.
serveTasks(tasks)
