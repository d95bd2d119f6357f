import { width } from '../../src/cli/render/width.ts'
import type { Run } from './ansi.ts'

/** The colours that a terminal is set up with: those that Visual Studio Code uses for its own. */
type Theme = { readonly back: string; readonly text: string; readonly colours: readonly string[] }

export const themes = {
  dark: {
    back: '#1e1e1e',
    text: '#cccccc',
    colours: ['#000000', '#cd3131', '#0dbc79', '#e5e510', '#2472c8', '#bc3fbc', '#11a8cd', '#e5e5e5'],
  },
  light: {
    back: '#ffffff',
    text: '#333333',
    colours: ['#000000', '#cd3131', '#107c10', '#949800', '#0451a5', '#bc05bc', '#0598bc', '#555555'],
  },
} as const satisfies Record<string, Theme>

const columnWidth = 8
const lineHeight = 18
const margin = 12

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** The screen as an image. Each word stands at its column, whatever font the reader has. */
export function imageOf(lines: readonly (readonly Run[])[], columns: number, theme: Theme, title: string): string {
  const [wide, high] = [columns * columnWidth + 2 * margin, lines.length * lineHeight + 2 * margin]
  const texts = lines.flatMap((runs, row) => {
    const y = margin + row * lineHeight + 13
    return runs.map(({ column, text, bold, dim, colour }) => {
      const attributes = [
        `x="${margin + column * columnWidth}"`,
        `y="${y}"`,
        `textLength="${width(text) * columnWidth}"`,
        ...(colour === undefined ? [] : [`fill="${theme.colours[colour]}"`]),
        ...(bold ? ['font-weight="bold"'] : []),
        ...(dim ? ['opacity=".6"'] : []),
      ]
      return `<text ${attributes.join(' ')}>${escaped(text)}</text>`
    })
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${high}" viewBox="0 0 ${wide} ${high}" role="img" aria-label="${escaped(title)}">`,
    `<rect width="${wide}" height="${high}" rx="6" fill="${theme.back}"/>`,
    `<g font-family="Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="${theme.text}" lengthAdjust="spacingAndGlyphs">`,
    ...texts,
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}
