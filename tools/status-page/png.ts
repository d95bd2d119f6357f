import { crc32, deflateSync, inflateSync } from 'node:zlib'

/** Colors that a picture of a page keeps. Text with smooth edges needs no more. */
const colors = 48

type Pixels = { readonly width: number; readonly height: number; readonly rgb: Buffer }

/** The same picture in a tenth of the bytes: the most frequent colors as a palette, compressed well. */
export function paletted(png: Buffer): Buffer {
  const { width, height, rgb } = pixelsOf(png)
  const counts = new Map<number, number>()
  for (let at = 0; at < rgb.length; at += 3) {
    const color = rgb.readUIntBE(at, 3)
    counts.set(color, (counts.get(color) ?? 0) + 1)
  }
  const palette = [...counts].sort(([, one], [, other]) => other - one).slice(0, colors)
  const indexes = new Map([...counts.keys()].map((color) => [color, nearest(color, palette)] as const))
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      rows[y * (width + 1) + 1 + x] = indexes.get(rgb.readUIntBE((y * width + x) * 3, 3)) ?? 0
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3, 0, 0, 0], 8)
  return Buffer.concat([
    png.subarray(0, 8),
    chunkOf('IHDR', header),
    chunkOf('PLTE', Buffer.from(palette.flatMap(([color]) => channelsOf(color)))),
    chunkOf('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunkOf('IEND', Buffer.alloc(0)),
  ])
}

const channelsOf = (color: number): readonly number[] => [color >> 16, (color >> 8) & 255, color & 255]

function nearest(color: number, palette: readonly (readonly [number, number])[]): number {
  const distances = palette.map(([other]) => {
    const channels = channelsOf(other)
    return channelsOf(color).reduce((sum, channel, at) => sum + (channel - (channels[at] ?? 0)) ** 2, 0)
  })
  return distances.indexOf(Math.min(...distances))
}

/** The pixels of a picture as Chromium writes it: eight bits for each of three colors, not interlaced. */
function pixelsOf(png: Buffer): Pixels {
  const data: Buffer[] = []
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at))
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  const width = png.readUInt32BE(16)
  const height = png.readUInt32BE(20)
  const filtered = inflateSync(Buffer.concat(data))
  const stride = width * 3
  const rgb = Buffer.alloc(stride * height)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x
      const left = x < 3 ? 0 : (rgb[at - 3] ?? 0)
      const above = y === 0 ? 0 : (rgb[at - stride] ?? 0)
      const corner = x < 3 || y === 0 ? 0 : (rgb[at - stride - 3] ?? 0)
      const filter = filtered[y * (stride + 1)] ?? 0
      rgb[at] = (filtered[at + y + 1] ?? 0) + predicted(filter, left, above, corner)
    }
  return { width, height, rgb }
}

/** The value that a filter of PNG adds to a byte (PNG specification, section 9). */
function predicted(filter: number, left: number, above: number, corner: number): number {
  if (filter === 4) {
    const distances = [left, above, corner].map((value) => Math.abs(left + above - corner - value))
    return [left, above, corner][distances.indexOf(Math.min(...distances))] ?? 0
  }
  return [0, left, above, (left + above) >> 1][filter] ?? 0
}

function chunkOf(type: string, body: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type, 'latin1'), body])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(body.length, 0)
  frame.writeUInt32BE(crc32(content), 4)
  return Buffer.concat([frame.subarray(0, 4), content, frame.subarray(4)])
}
