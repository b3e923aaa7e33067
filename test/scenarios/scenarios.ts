// All scenarios: what can happen to a run, as journals. Every dialect is tested with every one of
// them, so every dialect has to encode a new one.

import { answers } from './answers.ts'
import { clientTools } from './client-tools.ts'
import { endings } from './endings.ts'
import type { Scenario } from './journal-builder.ts'
import { people } from './people.ts'
import { tools } from './tools.ts'

const all = [...answers, ...tools, ...people, ...clientTools, ...endings]

export type ScenarioName = (typeof all)[number]['name']

export const scenarios: readonly (Scenario & { readonly name: ScenarioName })[] = all

export function scenarioNamed(name: ScenarioName): Scenario {
  const found = scenarios.find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`There is no scenario ${name}.`)
  return found
}
