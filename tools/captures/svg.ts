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
export const imageOf = (lines: Screen, columns: number, theme: Theme, title: string): string =>
  imageWith(textsOf(lines, theme), lines.length, columns, theme, title)

/** Seconds that each screen of a recording is shown. */
const secondsEach = 2

/** The screens one after the other, again and again. */
export function recordingOf(screens: readonly Screen[], columns: number, theme: Theme, title: string): string {
  const share = 100 / screens.length
  const style = `<style>@keyframes s{0%{visibility:visible}${share}%,to{visibility:hidden}}.s{visibility:hidden;animation:s ${secondsEach * screens.length}s step-end infinite}</style>`
  const groups = screens.flatMap((lines, at) => [
    `<g class="s" style="animation-delay:${(at - screens.length) * secondsEach}s">`,
    ...textsOf(lines, theme),
    '</g>',
  ])
  return imageWith([style, ...groups], Math.max(...screens.map(({ length }) => length)), columns, theme, title)
}

type Screen = readonly (readonly Run[])[]

const textsOf = (lines: Screen, theme: Theme): readonly string[] =>
  lines.flatMap((runs, row) => {
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

function imageWith(texts: readonly string[], rows: number, columns: number, theme: Theme, title: string): string {
  const [wide, high] = [columns * columnWidth + 2 * margin, rows * lineHeight + 2 * margin]
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
