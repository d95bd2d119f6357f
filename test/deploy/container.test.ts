import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { account, run } from '../install/installed.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const text = readFileSync(join(root, 'deploy/container/Containerfile'), 'utf8')

type Instruction = { readonly name: string; readonly value: string }

/** The instructions of each stage; the first stage begins before the first FROM. */
const stages = text
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split(/^(?=FROM )/m)
  .map((stage) =>
    stage
      .trim()
      .split('\n')
      .map((line): Instruction => {
        const [, name = '', value = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
        return { name, value }
      }),
  )
const image = stages.at(-1) ?? []
const valuesOf = (name: string): readonly string[] => image.filter((one) => one.name === name).map(({ value }) => value)

describe('the container file (read, not built: no container engine runs in the tests)', () => {
  test('has a build stage, and an image that contains nothing of it but the program', () => {
    expect(stages).toHaveLength(3)
    expect(valuesOf('COPY').filter((value) => value.startsWith('--from=build'))).toEqual([
      ...['package.json', 'bin', 'dist', 'node_modules'].map((name) => `--from=build /build/${name} /opt/svc/${name}`),
      // The drivers, where root adds them.
      '--from=build /usr/local/lib/svc /usr/local/lib/svc',
    ])
    expect(valuesOf('COPY').filter((value) => !value.startsWith('--from=build'))).toEqual([
      'deploy/ready.mjs /opt/svc/deploy/ready.mjs',
    ])
  })

  test('copies only files that the repository has', () => {
    const copied = stages.flat().filter(({ name, value }) => name === 'COPY' && !value.startsWith('--from'))
    const sources = copied.flatMap(({ value }) => value.split(' ').slice(0, -1))
    expect(sources.length).toBeGreaterThan(5)
    expect(sources.filter((source) => !existsSync(join(root, source)))).toEqual([])
  })

  test('runs as a numeric user other than root, who owns the volume', () => {
    expect(valuesOf('USER')).toEqual(['65532:65532'])
    expect(valuesOf('VOLUME')).toEqual(['/var/lib/svc'])
    expect(valuesOf('RUN').join()).toContain('install -d -o 65532 -g 65532 -m 0700 /var/lib/svc')
  })

  test('writes on the volume only, so that the root can be read-only', () => {
    expect(valuesOf('ENV').join()).toContain('HOME=/var/lib/svc SVC_HOME=/var/lib/svc')
  })

  test('requires a configuration, checks itself, and gets the signals of the engine', () => {
    expect(valuesOf('ENV').join()).toContain('SVC_REQUIRE_CONFIG=1')
    expect(valuesOf('HEALTHCHECK').join()).toContain('CMD ["node", "/opt/svc/deploy/ready.mjs", "8790"]')
    // In the form of a list: a shell in between would not pass SIGTERM on.
    expect(valuesOf('ENTRYPOINT')).toEqual(['["svc"]'])
    expect(valuesOf('CMD')).toEqual(['["serve"]'])
  })
})

describe('the manifest for Kubernetes (read, not applied)', () => {
  const [service, manifest] = parseAllDocuments(
    readFileSync(join(root, 'deploy/container/kubernetes.yaml'), 'utf8'),
  ).map((document) => document.toJS())
  const pod = manifest.spec.template.spec
  const [container] = pod.containers

  test('allows no root, no writes beside the volumes and no privileges', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532 })
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  test('has the Service that the pods get their name from, at the port on which they listen', () => {
    expect([service.kind, service.metadata.name]).toEqual(['Service', manifest.spec.serviceName])
    expect(service.spec.selector).toEqual(manifest.spec.selector.matchLabels)
    expect(pod.containers[0].ports).toContainEqual({ name: service.spec.ports[0].targetPort, containerPort: 8790 })
    expect(container.args).toContain(`--allowed-host=${service.metadata.name}`)
  })

  test('does not let the kubelet open the store to the group at each start', () => {
    expect(pod.securityContext.fsGroupChangePolicy).toBe('OnRootMismatch')
  })

  test('mounts svc.yaml as a single file, because the folder of a ConfigMap is writable for all', () => {
    const [mount] = container.volumeMounts.filter(({ name }: { readonly name: string }) => name === 'config')
    expect(mount).toEqual({ name: 'config', mountPath: '/etc/svc/svc.yaml', subPath: 'svc.yaml', readOnly: true })
  })

  test('starts svc serve with flags that exist', async () => {
    const { default: Serve } = await import('../../src/commands/serve.ts')
    const [command, ...args] = container.args as readonly string[]
    expect(command).toBe('serve')
    const flags = args.map((arg) => /^--([\w-]+)=/.exec(arg)?.[1] ?? arg)
    expect(flags.filter((flag) => !Object.keys(Serve.flags).includes(flag))).toEqual([])
  })
})

const notRoot = process.getuid?.() === 0 ? undefined : 'it needs root, to run as another account'

suiteWith(notRoot, 'a volume with fsGroup, as a container sees it (simulated: another account, no engine)', () => {
  const folder = temporaryFolder()

  const asContainer = (volume: string, ...args: readonly string[]) =>
    run(
      'setpriv',
      ['--reuid=65532', '--regid=65532', '--groups=65532', '--', process.execPath, join(root, 'bin/run.js'), ...args],
      // The tests' own cache of compiled code belongs to another account.
      { ...account(volume, `${dirname(process.execPath)}:/usr/bin:/bin`), SVC_HOME: volume, NODE_COMPILE_CACHE: '' },
    )

  test('svc creates its store in a folder of its own, which only it can open', () => {
    run('chmod', ['755', folder])
    const volume = join(folder, 'volume')
    mkdirSync(volume)
    run('chown', ['root:65532', volume])
    run('chmod', ['2775', volume])
    const added = asContainer(volume, 'users', 'add', 'agents', '--no-password')
    expect(added.status, added.stderr).toBe(0)
    expect(run('stat', ['-c', '%u %a', join(volume, 'store')]).stdout).toBe('65532 2700\n')
    expect(asContainer(volume, 'users', 'list').stdout).toContain('agents')
    // What the kubelet does at each start without fsGroupChangePolicy: OnRootMismatch.
    run('chmod', ['-R', 'g+rwX', volume])
    const refused = asContainer(volume, 'users', 'list')
    expect(refused.status).toBe(12)
    expect(refused.stderr).toContain('chmod 700')
  })
})
