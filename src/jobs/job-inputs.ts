// Checks a job request against its skill: inline values against the skill's schemas, and
// uploaded files against the file names in its input schema.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { schemaComplaints } from '../kit/json-schema.ts'
import { type ExecutionMode, type JsonSchema, type Skill, supportsEngine } from '../skills/skill.ts'

export type Values = Record<string, JsonValue>

export function checkSupport(skill: Skill, engine: string, mode: ExecutionMode, engineName: string): void {
  if (!supportsEngine(skill, engine)) {
    throw new AppError(
      'skill_engine_unsupported',
      `The skill ${skill.id} does not run on the engine ${JSON.stringify(engine)}.`,
      {
        details: { skill_id: skill.id, engine, engines: skill.engines, unsupported_engines: skill.unsupportedEngines },
      },
    )
  }
  checkEngine(engine, engineName)
  if (!skill.modes.includes(mode)) {
    throw new AppError(
      'skill_execution_mode_unsupported',
      `The skill ${skill.id} does not run in the mode ${mode}; use ${skill.modes.join(' or ')}.`,
      {
        details: { skill_id: skill.id, execution_mode: mode, execution_modes: skill.modes },
      },
    )
  }
}

export function checkEngine(engine: string, engineName: string): void {
  if (engine === engineName) return
  throw new AppError(
    'skill_engine_unsupported',
    `This server has no engine ${JSON.stringify(engine)}; use ${engineName}.`,
    {
      details: { engine, engines: [engineName] },
    },
  )
}

export function checkParameter(skill: Skill, parameter: Values): void {
  const wrong = skill.schemas.parameter === undefined ? [] : schemaComplaints(skill.schemas.parameter, parameter)
  if (wrong.length === 0) return
  throw new AppError(
    'job_parameter_invalid',
    `The parameter does not fit the skill ${skill.id}: ${wrong.join('; ')}.`,
    { details: { complaints: wrong } },
  )
}

/** File inputs are not required here, because they are uploaded later; see `withFiles`. */
export function checkInlineInput(skill: Skill, input: Values): void {
  const wrong =
    skill.schemas.input === undefined ? [] : schemaComplaints(withoutFiles(skill.schemas.input, skill), input)
  if (wrong.length === 0) return
  throw new AppError('job_input_invalid', `The input does not fit the skill ${skill.id}: ${wrong.join('; ')}.`, {
    details: { complaints: wrong },
  })
}

function withoutFiles(schema: JsonSchema, skill: Skill): JsonSchema {
  const files = new Set(skill.fileInputs.map(({ name }) => name))
  if (files.size === 0) return schema
  const properties = Object.entries(schema['properties'] as Values).map(([name, property]) => [
    name,
    files.has(name) ? {} : property,
  ])
  const required = Array.isArray(schema['required'])
    ? schema['required'].filter((name) => !files.has(String(name)))
    : []
  return { ...schema, properties: Object.fromEntries(properties) as Values, required }
}

/** Puts the path of each uploaded file into the input. Throws `job_input_invalid` if a file is missing. */
export function withFiles(skill: Skill, input: Values, paths: readonly string[]): Values {
  const result = { ...input }
  for (const { name, required } of skill.fileInputs) {
    const path = pathFor(name, input[name], paths, skill.fileInputs.length === 1)
    if (path !== undefined) result[name] = path
    else if (required || input[name] !== undefined) {
      throw new AppError(
        'job_input_invalid',
        `The skill ${skill.id} needs a file for ${JSON.stringify(name)}: put one of that name into the archive.`,
        {
          details: { missing: name, files: paths.slice(0, 20) },
        },
      )
    }
  }
  return result
}

function pathFor(
  name: string,
  wanted: JsonValue | undefined,
  paths: readonly string[],
  only: boolean,
): string | undefined {
  if (typeof wanted === 'string') return paths.find((path) => path === wanted)
  const stem = (path: string) => (path.split('/').at(-1) ?? '').replace(/\.[^.]*$/, '')
  return (
    paths.find((path) => path === name) ??
    paths.find((path) => stem(path) === name) ??
    (only && paths.length === 1 ? paths[0] : undefined)
  )
}
