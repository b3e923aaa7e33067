// PostgreSQL cannot store the character U+0000 in text, but what people and models write may
// contain it. It is stored as the noncharacter U+FDD0 and a zero; U+FDD0 itself is doubled.

const escape = '\uFDD0'

export function toTextColumn(text: string): string {
  if (!text.includes('\0') && !text.includes(escape)) return text
  return text.replaceAll(escape, escape + escape).replaceAll('\0', `${escape}0`)
}

export function fromTextColumn(stored: string): string {
  if (!stored.includes(escape)) return stored
  return stored.replace(/\uFDD0([0\uFDD0])/g, (_all, sign: string) => (sign === '0' ? '\0' : escape))
}
