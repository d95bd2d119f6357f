/**
 * The two archive formats of a Debian package: tar (ustar) and ar. Written here so that `npm run deb` needs nothing but
 * Node, needs no root for files that belong to root, and gives the same bytes for the same input on every machine.
 */

/** One entry of a tar archive. `path` is relative to `/`, without a leading slash, or `.`; everything belongs to root. */
export type Entry =
  | { readonly type: 'directory'; readonly path: string; readonly mode: number }
  | { readonly type: 'file'; readonly path: string; readonly mode: number; readonly content: Buffer }
  | { readonly type: 'link'; readonly path: string; readonly target: string }

const block = 512

/** The entries as a tar archive. `seconds` since 1970 is the modification time of every entry. */
export function tar(entries: readonly Entry[], seconds: number): Buffer {
  const parts = entries.flatMap((entry) => {
    const header = tarHeader(entry, seconds)
    return entry.type === 'file' ? [header, entry.content, padding(entry.content.length)] : [header]
  })
  // The end of an archive is two empty blocks.
  return Buffer.concat([...parts, Buffer.alloc(2 * block)])
}

const padding = (length: number): Buffer => Buffer.alloc((block - (length % block)) % block)

const typeFlags = { file: '0', link: '2', directory: '5' }

function tarHeader(entry: Entry, seconds: number): Buffer {
  const path = entry.path === '.' ? './' : `./${entry.path}${entry.type === 'directory' ? '/' : ''}`
  const { name, prefix } = splitPath(path)
  const header = Buffer.alloc(block)
  const octal = (value: number, offset: number, width: number): void => {
    header.write(`${value.toString(8).padStart(width - 1, '0')}\0`, offset, 'latin1')
  }
  header.write(name, 0, 100)
  octal(entry.type === 'link' ? 0o777 : entry.mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(entry.type === 'file' ? entry.content.length : 0, 124, 12)
  octal(seconds, 136, 12)
  // The checksum is computed with blanks in its own place.
  header.write(' '.repeat(8), 148, 'latin1')
  header.write(typeFlags[entry.type], 156, 'latin1')
  if (entry.type === 'link') header.write(entry.target, 157, 100)
  header.write('ustar\x0000', 257, 'latin1')
  header.write('root', 265, 'latin1')
  header.write('root', 297, 'latin1')
  header.write(prefix, 345, 155)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

/** A path of more than 100 bytes is split at a slash: ustar has 155 more bytes for what is before it. */
function splitPath(path: string): { readonly name: string; readonly prefix: string } {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: '' }
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)]
    if (name !== '' && Buffer.byteLength(name) <= 100 && Buffer.byteLength(prefix) <= 155) return { name, prefix }
  }
  throw new Error(`the path is too long for a tar archive: ${path}`)
}

/** The members as an ar archive, in this order. */
export function ar(members: readonly (readonly [name: string, content: Buffer])[], seconds: number): Buffer {
  const parts = members.flatMap(([name, content]) => [
    Buffer.from(
      `${name.padEnd(16)}${String(seconds).padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}` +
        `${String(content.length).padEnd(10)}\`\n`,
      'latin1',
    ),
    content,
    Buffer.from(content.length % 2 === 1 ? '\n' : '', 'latin1'),
  ])
  return Buffer.concat([Buffer.from('!<arch>\n', 'latin1'), ...parts])
}
