// What every command is given.

import type { Command } from 'commander'
import type { Clock } from '../kit/clock.ts'
import type { Output } from './output.ts'

export type CliContext = {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly output: Output
}

/** Adds one command, which loads what it needs when it runs. */
export type RegisterCommand = (program: Command, context: CliContext) => void
