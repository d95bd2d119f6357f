/** A fenced block of a page: its language and what stands behind that, its lines, and the line at which it begins. */
export type Block = {
  readonly language: string
  readonly attribute: string
  readonly content: string
  readonly line: number
}

/** The fenced blocks of a Markdown page, in order. */
export function blocksOf(page: string): readonly Block[] {
  return [...page.matchAll(/^```(\w+)(?: (\w+))?\n([\s\S]*?)^```$/gm)].map((match) => {
    const [, language = '', attribute = '', content = ''] = match
    return { language, attribute, content, line: page.slice(0, match.index).split('\n').length }
  })
}

/** The commands of a shell block: a line each, with its continuation lines and its here-documents. */
export function commandsOf({ content, line }: Block): readonly { readonly text: string; readonly line: number }[] {
  const commands: { text: string; line: number }[] = []
  let open: { text: string; line: number; end: string | undefined } | undefined
  for (const [index, text] of content.split('\n').entries()) {
    if (open === undefined) {
      if (text.trim() === '' || text.startsWith('#')) continue
      open = { text, line: line + index + 1, end: /<<'?(\w+)'?/.exec(text)?.[1] }
    } else open = { ...open, text: `${open.text}\n${text}`, end: text === open.end ? undefined : open.end }
    if (open.end !== undefined || open.text.endsWith('\\')) continue
    commands.push({ text: open.text, line: open.line })
    open = undefined
  }
  if (open !== undefined) commands.push({ text: open.text, line: open.line })
  return commands
}

const screenBlock = /(<!-- screen: svc health -->\n```text\n)([\s\S]*?)(```\n)/

/** The screen that a page shows between its markers. Throws when it has none. */
export function screenOf(page: string): string {
  const screen = screenBlock.exec(page)?.[2]
  if (screen === undefined) throw new Error('the page has no block after <!-- screen: svc health -->')
  return screen
}

/** The page with another screen. */
export const withScreen = (page: string, screen: string): string =>
  page.replace(screenBlock, (_, before: string, __: string, after: string) => `${before}${screen}${after}`)
