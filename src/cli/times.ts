// Times and sizes as people read them.

const units = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'm', ms: 60_000 },
]

/** `340 ms`, `4.2 s`, `3 m 12 s`, `2 d 4 h`. */
export function durationText(ms: number): string {
  const positive = Math.max(0, Math.round(ms))
  if (positive < 1000) return `${positive} ms`
  if (positive < 60_000) return `${(positive / 1000).toFixed(1)} s`
  const at = units.findIndex((unit) => positive >= unit.ms)
  const unit = units[at]
  const next = units[at + 1] ?? { name: 's', ms: 1000 }
  if (unit === undefined) return `${positive} ms`
  return `${Math.floor(positive / unit.ms)} ${unit.name} ${Math.floor((positive % unit.ms) / next.ms)} ${next.name}`
}

/** In the time zone of the machine: `2026-11-16 18:46:06`. */
export function localTime(epochMs: number): string {
  const date = new Date(epochMs)
  const pad = (part: number) => String(part).padStart(2, '0')
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
}

export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const power = Math.min(4, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** power).toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`
}

/** For names of files: `20261116-184606`, in UTC. */
export function fileStamp(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-')
}
