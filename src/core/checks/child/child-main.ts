import { probes } from './probes.ts'
import { serveProbe } from './serve.ts'

// The main program of a probe's child process.
void serveProbe(probes)
