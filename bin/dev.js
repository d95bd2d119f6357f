#!/usr/bin/env node
// The program from its sources: Node strips the types. For development only.
import('../src/main.ts').then(function (program) {
  program.main(program.processIo(), process.argv.slice(2))
})
