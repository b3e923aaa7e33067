// Times that clients and models give: ISO 8601 text, or epoch milliseconds.

/** Years 1 to 9999, so that every time has the usual ISO form. */
const timeMin = -62_135_596_800_000
const timeMax = 253_402_300_799_999

const isoForm = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/i

/** Epoch milliseconds. A time without a zone is UTC. Null if the value is no time. */
export function givenTime(value: string | number): number | null {
  const at = typeof value === 'number' ? value : parsed(value)
  return Number.isInteger(at) && at >= timeMin && at <= timeMax ? at : null
}

function parsed(text: string): number {
  const form = isoForm.exec(text)
  if (form === null) return Number.NaN
  const hasTime = text.includes('T') || text.includes('t')
  return Date.parse(hasTime && form[1] === undefined ? `${text}Z` : text)
}
