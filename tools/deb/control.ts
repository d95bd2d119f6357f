/** The description of a Debian package: texts of the folder DEBIAN and of /usr/share/doc. */

/** Names of CPU architectures: Node's, and Debian's. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/** Debian's name for the architecture of the running Node. Throws for one that svc is not packaged for. */
export function debianArchitecture(arch: string): string {
  const name = architectures[arch]
  if (name === undefined) throw new Error(`no package is built for ${arch}: only for ${Object.keys(architectures)}`)
  return name
}

/** A version of npm as one of Debian: 1.2.0-beta.1 is older than 1.2.0, which Debian writes with a tilde. */
export const debianVersion = (version: string): string => version.replace('-', '~')

/** Debian asks for a person; whoever builds for others sets the variables that Debian's tools read. */
export const maintainer = (env: Readonly<Record<string, string | undefined>>): string =>
  `${env['DEBFULLNAME'] ?? 'svc'} <${env['DEBEMAIL'] ?? 'svc@svc-cli.invalid'}>`

/** `installedKiB` as `du` counts it. */
export function control(fields: {
  readonly version: string
  readonly architecture: string
  readonly maintainer: string
  readonly installedKiB: number
}): string {
  return `Package: svc
Version: ${debianVersion(fields.version)}
Architecture: ${fields.architecture}
Maintainer: ${fields.maintainer}
Installed-Size: ${fields.installedKiB}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 8)
Suggests: systemd
Conflicts: daemontools
Section: admin
Priority: optional
Homepage: https://www.npmjs.com/package/@svc-cli/svc
Description: monitoring, health checks and role administration for servers
 svc checks servers (HTTP, SQL, FTP, LDAP, message queues and others) at three
 depths, from a terminal and in CI, and reports what is wrong and why. "svc
 serve" runs the checks by a schedule, and exports the results to Prometheus,
 Nagios, PRTG and web browsers.
 .
 This package contains the Node.js that svc runs on, and a systemd unit for
 "svc serve", which is not enabled by default. It conflicts with daemontools,
 which has a program of the same name.
`
}

/** The file `copyright`, in Debian's format. */
export const copyright = (
  license: string,
): string => `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: svc
Source: https://www.npmjs.com/package/@svc-cli/svc

Files: *
Copyright: the authors of svc
License: Expat

Files: usr/lib/svc/node
Copyright: Node.js contributors
License: Node
 The license of Node.js and of the libraries in it:
 /usr/share/doc/svc/node-license.txt.gz

Files: usr/lib/svc/node_modules/*
Copyright: the authors of each package
License: npm
 Each folder contains the license of its package.

License: Expat
${license
  .trim()
  .split('\n')
  .map((line) => (line.trim() === '' ? ' .' : ` ${line}`))
  .join('\n')}
`

/** The changelog in Debian's format; what changed is in the other one. `seconds` since 1970. */
export function changelog(version: string, person: string, seconds: number): string {
  const date = new Date(seconds * 1000).toUTCString().replace('GMT', '+0000')
  return `svc (${debianVersion(version)}) unstable; urgency=medium

  * Built from the sources of svc ${version}. /usr/share/doc/svc/NEWS.gz
    lists what changed for users.

 -- ${person}  ${date}
`
}
