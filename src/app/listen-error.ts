// Why the server cannot listen, as a sentence that names the setting to change.

import { AppError } from '../errors/app-error.ts'

export function listenError(cause: unknown, { host, port }: { host: string; port: number }): unknown {
  const sentence = sentenceOf(String((cause as { code?: unknown } | null)?.code), host, port)
  return sentence === null ? cause : new AppError('config_invalid', sentence, { cause })
}

function sentenceOf(code: string, host: string, port: number): string | null {
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} of ${host} is in use: stop the program that has it, or set PORT to another port (0 takes any free one).`
    case 'EACCES':
    case 'EPERM':
      return `This user may not listen at port ${port}; set PORT to one above 1023.`
    case 'EADDRNOTAVAIL':
      return `HOST is ${host}, which is not an address of this machine; set it to one that is, or to 127.0.0.1.`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `HOST is ${host}, a name that cannot be resolved; set it to an address of this machine, or to 127.0.0.1.`
    default:
      return null
  }
}
