// One block of markdown → safe HTML. HTML in the text is shown as text. Images are links that name their host, because
// loading one would tell that host who reads. What remains goes through a sanitizer with a short list of elements, so that
// a mistake here or in the parser does no harm.

import createDOMPurify, { type Config } from 'dompurify'
import { Marked, type Token, type Tokens } from 'marked'
import { withVisibleOverrides } from './visible-text.ts'

/** A table with more cells is cut: a page with hundreds of thousands of them stands still. */
const cellsMax = 2000

const purify = createDOMPurify(window)

const rules: Config = {
  ALLOWED_TAGS: [
    'p',
    'br',
    'hr',
    'strong',
    'em',
    'del',
    'code',
    'pre',
    'blockquote',
    'ul',
    'ol',
    'li',
    'a',
    'span',
    'input',
    'h1',
    'h2',
    'h3',
    'h4',
    'h5',
    'h6',
    'table',
    'thead',
    'tbody',
    'tr',
    'th',
    'td',
    'div',
  ],
  ALLOWED_ATTR: [
    'href',
    'title',
    'target',
    'rel',
    'align',
    'start',
    'type',
    'checked',
    'disabled',
    'class',
    'dir',
    'tabindex',
  ],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  // Their values are no addresses, so the rule for addresses does not hold for them.
  ADD_URI_SAFE_ATTR: ['target', 'rel', 'align', 'start', 'type', 'checked', 'disabled', 'dir', 'tabindex'],
  ALLOW_DATA_ATTR: false,
  RETURN_TRUSTED_TYPE: true,
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)

const reader = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escaped(text),
    link({ href, title, tokens }: Tokens.Link): string {
      const text = this.parser.parseInline(tokens)
      const url = webAddress(href)
      if (url === null) return text
      const hint = title == null ? '' : ` title="${escaped(title)}"`
      return `<a href="${escaped(url.href)}"${hint} target="_blank" rel="noopener noreferrer nofollow">${text}</a>`
    },
    image({ href, text }: Tokens.Image): string {
      const url = webAddress(href)
      const label = escaped(text.trim() === '' ? 'image' : text)
      if (url === null) return `<span class="markdown-image">${label}</span>`
      const place = escaped(url.host)
      return `<a class="markdown-image" href="${escaped(url.href)}" target="_blank" rel="noopener noreferrer nofollow">${label} <span class="faint">(${place})</span></a>`
    },
  },
})

/** Null if it leads anywhere but to a web page or a mail address. */
function webAddress(href: string): URL | null {
  const url = URL.canParse(href) ? new URL(href) : null
  return url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null
}

/** The HTML, and how many rows of a table were left out. */
export function htmlOf(token: Token): { html: string; rowsLeftOut: number } {
  const { shown, rowsLeftOut } = withinLimits(token)
  const html = reader.parser([shown])
  const wide = token.type === 'table' ? `<div class="markdown-wide" tabindex="0">${html}</div>` : html
  return { html: purify.sanitize(withVisibleOverrides(wide), rules), rowsLeftOut }
}

function withinLimits(token: Token): { shown: Token; rowsLeftOut: number } {
  if (token.type !== 'table') return { shown: token, rowsLeftOut: 0 }
  const table = token as Tokens.Table
  const columns = Math.max(1, table.header.length)
  if (columns > cellsMax) return { shown: { type: 'code', raw: table.raw, text: table.raw }, rowsLeftOut: 0 }
  const rowsMax = Math.max(1, Math.floor(cellsMax / columns))
  const rowsLeftOut = Math.max(0, table.rows.length - rowsMax)
  return rowsLeftOut === 0
    ? { shown: table, rowsLeftOut }
    : { shown: { ...table, rows: table.rows.slice(0, rowsMax) }, rowsLeftOut }
}
