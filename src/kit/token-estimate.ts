// An estimate of how many tokens a text has, without the tokenizer of any model.

/** Four characters per token, but one per CJK character. Texts with many symbols have more; see `context-room.ts` for the margin. */
export function estimateTokens(text: string): number {
  let wide = 0
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x2e7f) wide += 1
  return wide + Math.ceil((text.length - wide) / 4)
}
