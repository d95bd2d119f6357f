/** Icinga 2: a check for each output, and one that writes what Icinga has of the others, with its own parser of figures. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { env, inPackages, names, shown, withProgram } from './plugin.mjs'

const program = inPackages('usr/lib/x86_64-linux-gnu/icinga2/sbin/icinga2')
const [, version] = /version: r?([\d.]+)/.exec(execFileSync(program, ['--version'], { env, encoding: 'utf8' }))
const group = execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim()

const configuration = (plugin, file) => `
include <itl>
object CheckerComponent "checker" {}
object Host "svc" {
  check_command = "dummy"
  enable_active_checks = false
}
object CheckCommand "run" { command = [ "${plugin}", "$service.name$" ] }
object CheckCommand "tell" {
  command = {{
    var all = {}
    for (service in get_objects(Service)) {
      var result = service.last_check_result
      if (service.name != "tell" && result) {
        var data = []
        for (text in result.performance_data) {
          var datum = parse_performance_data(text)
          data.add({ label = datum.label, value = datum.value, max = datum.max })
        }
        all[service.name] = { state = result.state, text = result.output, data = data }
      }
    }
    return [ "/bin/sh", "-c", "printf %s \\"$1\\" >${file}.new && mv ${file}.new ${file}", "sh", Json.encode(all) ]
  }}
}
template Service "each" {
  host_name = "svc"
  check_interval = 1s
  retry_interval = 1s
}
object Service "tell" {
  import "each"
  check_command = "tell"
}
for (name in ${JSON.stringify(names)}) {
  object Service name {
    import "each"
    check_command = "run"
  }
}
`

const all = await withProgram(
  (home, plugin) => {
    const [file, config] = [join(home, 'told'), join(home, 'icinga2.conf')]
    writeFileSync(config, configuration(plugin, file))
    const folders = { DataDir: 'data', LogDir: 'log', InitRunDir: 'run', CacheDir: 'cache', SpoolDir: 'spool' }
    const constants = {
      ...Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, join(home, folder)])),
      ...{ RunAsUser: userInfo().username, RunAsGroup: group },
      ...{ IncludeConfDir: inPackages('usr/share/icinga2/include'), PkgDataDir: inPackages('usr/share/icinga2') },
    }
    const defined = Object.entries(constants).map(([name, value]) => `-D${name}=${value}`)
    return { command: [program, 'daemon', '-c', config, ...defined], file }
  },
  (text) => {
    const told = JSON.parse(text)
    return names.every((name) => name in told) ? told : undefined
  },
)

const runs = names.map((name) => {
  const { state, text, data } = all[name]
  const [line, ...more] = text.split('\n')
  return [name, shown(name, { state, line: line.trimEnd(), more: more.join('\n'), data })]
})
process.stdout.write(JSON.stringify({ version, runs: Object.fromEntries(runs) }))
