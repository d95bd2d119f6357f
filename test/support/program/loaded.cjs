// Preloaded into the program under test: at its end, writes down every module that it has loaded.
const { writeFileSync } = require('node:fs')
const before = new Set(process.moduleLoadList)
process.on('exit', () => {
  const builtins = process.moduleLoadList.filter((name) => !before.has(name) && name.startsWith('NativeModule '))
  writeFileSync(
    process.env.LOADED_MODULES,
    JSON.stringify({
      files: Object.keys(require.cache),
      builtins: builtins.map((name) => name.slice('NativeModule '.length)),
    }),
  )
})
// Ends the program before its answer.
process.on('SIGUSR2', () => process.exit())
