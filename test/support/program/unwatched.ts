/**
 * A svc.yaml for a server that runs nothing by itself, where the file does not say how often: what a test counts is then
 * what the test causes.
 */
export function unwatched(yaml: string): string {
  if (/\bevery:/.test(yaml)) return yaml
  if (/^serve: *\{/m.test(yaml)) return yaml.replace(/^serve: *\{/m, 'serve: {every: off, ')
  if (/^serve: *\n +/m.test(yaml)) return yaml.replace(/^serve: *\n( +)/m, 'serve:\n$1every: off\n$1')
  if (/^\{\}\s*$/.test(yaml)) return 'serve: {every: off}\n'
  if (/^\{/.test(yaml)) return yaml.replace(/^\{/, '{serve: {every: off}, ')
  return `${yaml.trimEnd()}\nserve: {every: off}\n`
}
