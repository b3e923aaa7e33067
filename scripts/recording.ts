// Draws a recorded session as an animated SVG: two terminals, in which pieces of text appear at their
// times. It needs no script and no font, so a README can show it as an image.

export type Piece = { atMs: number; text: string; style?: 'command' | 'note' | 'bad' | 'good' }

/** A line is a list of pieces that appear one after the other. */
export type Pane = { title: string; lines: Piece[][] }

const columnWidth = 8.4
const lineHeight = 20
const padding = 16
const titleHeight = 34
/** How long the last picture stays before the recording starts again. */
const restMs = 4000

const colours = {
  background: '#0f1419',
  title: '#1b222b',
  border: '#2b3540',
  text: '#d6dde6',
  command: '#ffffff',
  note: '#8b98a8',
  bad: '#ff8f86',
  good: '#7ee2a8',
}

export function animatedSvg(panes: readonly Pane[], columns: number): string {
  const endMs = Math.max(...panes.flatMap(({ lines }) => lines.flat().map(({ atMs }) => atMs))) + restMs
  const rows = Math.max(...panes.map(({ lines }) => lines.length))
  const paneWidth = Math.ceil(columns * columnWidth + 2 * padding)
  const height = titleHeight + 2 * padding + rows * lineHeight
  const width = panes.length * paneWidth + (panes.length - 1) * padding
  const moments = [...new Set(panes.flatMap(({ lines }) => lines.flat().map(({ atMs }) => atMs)))].toSorted(
    (a, b) => a - b,
  )
  const nameOf = (atMs: number) => `t${moments.indexOf(atMs)}`
  const share = (atMs: number) => ((100 * atMs) / endMs).toFixed(2)

  const styles = moments.map(
    (atMs) =>
      `@keyframes ${nameOf(atMs)}{0%,${share(atMs)}%{opacity:0}${share(atMs + 1)}%,100%{opacity:1}}` +
      `.${nameOf(atMs)}{animation:${nameOf(atMs)} ${endMs}ms step-end infinite}`,
  )
  const drawn = panes.map((pane, index) => drawPane(pane, index * (paneWidth + padding), paneWidth, height, nameOf))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(panes.map(({ title }) => title).join(', '))}">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}
@media (prefers-reduced-motion:reduce){tspan{animation:none!important;opacity:1!important}}
${styles.join('\n')}
</style>
${drawn.join('\n')}
</svg>
`
}

function drawPane(
  { title, lines }: Pane,
  left: number,
  width: number,
  height: number,
  nameOf: (atMs: number) => string,
): string {
  const text = lines.map((line, row) => {
    const pieces = line.map(
      ({ atMs, text, style }) =>
        `<tspan class="${nameOf(atMs)}" fill="${colours[style ?? 'text']}">${escaped(text)}</tspan>`,
    )
    const y = titleHeight + padding + (row + 0.75) * lineHeight
    return `<text x="${left + padding}" y="${y}" xml:space="preserve">${pieces.join('')}</text>`
  })
  return `<rect x="${left + 0.5}" y="0.5" width="${width - 1}" height="${height - 1}" rx="10" fill="${colours.background}" stroke="${colours.border}"/>
<path d="M${left + 1} ${titleHeight}h${width - 2}" stroke="${colours.border}"/>
<text x="${left + padding}" y="22" fill="${colours.note}">${escaped(title)}</text>
${text.join('\n')}`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
