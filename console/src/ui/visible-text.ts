// Characters that change the direction of text can make it look like something else: an argument, a file name, a command.
// Where a person decides on what they read, these characters are shown as what they are.

const directionControls = /[\u202a-\u202e\u2066-\u2069\u061c\u200e\u200f]/g
const overrides = /[\u202d\u202e]/g

const name = (character: string) => `⟦U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0') ?? ''}⟧`

/** For arguments, outputs and code. */
export function withVisibleControls(text: string): string {
  return text.replace(directionControls, name)
}

/** For prose, where most of these characters are of use: only those that turn whole passages round. */
export function withVisibleOverrides(text: string): string {
  return text.replace(overrides, name)
}
