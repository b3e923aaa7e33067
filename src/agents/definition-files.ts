// Reads the files of one agent's folder: only regular files inside it (also not through a link), each and all
// together bounded in size. Errors name the field of agent.json and the file, and say what to do.

import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { isDeeperThan } from '../kit/json-depth.ts'

/** A template with long examples has a few KiB. */
export const agentFileBytesMax = 256 * 1024
/** Of all files that one definition names. */
const agentFolderBytesMax = 1024 * 1024
const jsonDepthMax = 64

export class DefinitionFiles {
  /** The folder, and the directories inside it that hold files of the definition or should hold one. */
  readonly directories: Set<string>
  readonly #folder: string
  readonly #texts = new Map<string, string>()
  /** How many bytes were read so far. */
  bytes = 0

  constructor(folder: string) {
    this.#folder = folder
    this.directories = new Set([folder])
  }

  /** `field` is the field of agent.json that names the file. */
  async text(field: string, path: string): Promise<string> {
    const known = this.#texts.get(path)
    if (known !== undefined) return known
    const body = await this.#read(`${field}: the file ${JSON.stringify(path)}`, path)
    this.#texts.set(path, body)
    return body
  }

  async json(field: string, path: string): Promise<unknown> {
    return parseJson(`${field}: the file ${JSON.stringify(path)}`, await this.text(field, path))
  }

  async card(): Promise<unknown> {
    return parseJson('agent.json', await this.#read('agent.json', 'agent.json'))
  }

  async #read(shown: string, path: string): Promise<string> {
    let root: string
    let real: string
    try {
      root = await realpath(this.#folder)
      const directory = dirname(resolve(root, path))
      if (directory.startsWith(root + sep) && (await stat(directory)).isDirectory()) this.directories.add(directory)
      real = await realpath(resolve(root, path))
    } catch {
      throw new Error(`${shown} does not exist in the agent's folder`)
    }
    if (!real.startsWith(root + sep))
      throw new Error(`${shown} lies outside the agent's folder; copy it into the folder`)
    const stats = await stat(real)
    if (!stats.isFile()) throw new Error(`${shown} is not a regular file`)
    if (stats.size > agentFileBytesMax) {
      throw new Error(`${shown} has ${stats.size} bytes; at most ${agentFileBytesMax} are allowed`)
    }
    this.bytes += stats.size
    if (this.bytes > agentFolderBytesMax) {
      throw new Error(`the files of the definition have more than ${agentFolderBytesMax} bytes together; shorten them`)
    }
    const bytes = await readFile(real).catch((error: unknown) => {
      // The message of the system names a path of this machine, and the list of agents is public.
      throw new Error(`${shown} cannot be read (${(error as { code?: string }).code ?? 'unknown error'})`, {
        cause: error,
      })
    })
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    } catch {
      throw new Error(`${shown} is not UTF-8 text; save it as UTF-8`)
    }
  }
}

function parseJson(shown: string, text: string): unknown {
  if (isDeeperThan(text, jsonDepthMax)) throw new Error(`${shown} is nested more than ${jsonDepthMax} levels deep`)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${shown} is not valid JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}
