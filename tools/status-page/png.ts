import { crc32, deflateSync, inflateSync } from 'node:zlib'

/** The same picture in fewer bytes: browsers compress pictures fast, not well. */
export function compressed(png: Buffer): Buffer {
  const chunks: Buffer[] = []
  const data: Buffer[] = []
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    if (type === 'IDAT') data.push(png.subarray(at + 8, at + 8 + length))
    else chunks.push(png.subarray(at, at + 12 + length))
    at += 12 + length
  }
  const end = chunks.pop() ?? Buffer.alloc(0)
  const body = deflateSync(inflateSync(Buffer.concat(data)), { level: 9, memLevel: 9 })
  return Buffer.concat([png.subarray(0, 8), ...chunks, chunkOf('IDAT', body), end])
}

function chunkOf(type: string, body: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type, 'latin1'), body])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(body.length, 0)
  frame.writeUInt32BE(crc32(content), 4)
  return Buffer.concat([frame.subarray(0, 4), content, frame.subarray(4)])
}
