// Gives a file to the person: the browser saves it under this name and never shows it as a page.

export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement('a')
  const url = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }))
  link.href = url
  link.download = name
  link.click()
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
