// Walks a schema and a value together. Every loop must spend steps. The rules for single
// values are in leaf-rules.ts. The error messages use the wording of other validators (such
// as Ajv), because people and models know it.

import { sortedJson } from '../sorted-json.ts'
import { Evaluated } from './evaluated.ts'
import { isObject, type Schema, type SchemaObject } from './keywords.ts'
import { leafProblems, matches, typeProblem } from './leaf-rules.ts'
import type { PreparedSchema } from './prepare-schema.ts'
import { charsPerStep, OutOfSteps, type Steps } from './steps.ts'

export type SchemaError = { path: string[]; message: string }

/** Maximum depth of the recursion, far below what the stack holds. */
const depthMax = 400
const errorsMax = 100
/** Property names come from outside, so they are truncated in messages. */
const nameCharsMax = 100

const none: SchemaError[] = []

export class Check {
  /** The reported errors. Errors of attempts are added only if the caller keeps them. */
  readonly found: SchemaError[] = []
  #errors: SchemaError[] = this.found
  readonly #schema: PreparedSchema
  readonly #steps: Steps
  /** Errors are not collected, and the first one ends the check. */
  readonly #quiet: boolean
  readonly #path: string[] = []
  #depth = 0

  constructor(schema: PreparedSchema, steps: Steps, mode: 'quiet' | 'report') {
    this.#schema = schema
    this.#steps = steps
    this.#quiet = mode === 'quiet'
  }

  run(value: unknown): boolean {
    return this.#apply(this.#schema.root, value, this.#evaluated())
  }

  #evaluated(): Evaluated | undefined {
    return this.#schema.tracksEvaluated ? new Evaluated() : undefined
  }

  #fail(message: string | (() => string)): false {
    if (!this.#quiet && this.#errors.length < errorsMax) {
      const text = typeof message === 'string' ? message : message()
      this.#errors.push({ path: this.#path.map((key) => key.slice(0, nameCharsMax)), message: text })
    }
    return false
  }

  /** Tries a schema that is allowed to fail. Returns its errors, which count only if the caller keeps them, or null if the value fits. */
  #attempt(schema: Schema, value: unknown, evaluated: Evaluated | undefined): readonly SchemaError[] | null {
    const kept = this.#errors
    const errors = this.#quiet ? none : []
    this.#errors = errors
    const inner = this.#evaluated()
    const fits = this.#apply(schema, value, inner)
    this.#errors = kept
    if (!fits) return errors
    if (inner !== undefined && evaluated !== undefined) this.#steps.spend(evaluated.merge(inner))
    return null
  }

  #keep(errors: readonly SchemaError[]): void {
    for (const error of errors) if (this.#errors.length < errorsMax) this.#errors.push(error)
  }

  #below(key: string, schema: Schema, value: unknown): boolean {
    this.#path.push(key)
    const fits = this.#apply(schema, value, this.#evaluated())
    this.#path.pop()
    return fits
  }

  #apply(schema: Schema, value: unknown, evaluated: Evaluated | undefined): boolean {
    this.#steps.spend(1)
    if (schema === true) return true
    if (schema === false) return this.#fail('boolean schema is false')
    if (this.#depth >= depthMax) throw new OutOfSteps()
    this.#depth += 1
    const fits = this.#isOfType(schema, value) && this.#rules(schema, value, evaluated)
    this.#depth -= 1
    return fits
  }

  #isOver(fits: boolean): boolean {
    return this.#quiet && !fits
  }

  #isOfType(schema: SchemaObject, value: unknown): boolean {
    const wrong = typeProblem(schema, value)
    return wrong === null || this.#fail(wrong)
  }

  #rules(schema: SchemaObject, value: unknown, evaluated: Evaluated | undefined): boolean {
    let fits = true
    for (const wrong of leafProblems(schema, value, this.#schema.patterns, this.#steps)) fits = this.#fail(wrong)
    if (this.#isOver(fits)) return false
    if (Array.isArray(value)) fits = this.#list(schema, value, evaluated) && fits
    else if (isObject(value)) fits = this.#object(schema, value, evaluated) && fits
    if (this.#isOver(fits)) return false
    fits = this.#combined(schema, value, evaluated) && fits
    if (evaluated === undefined) return fits
    if (Array.isArray(value)) return this.#unevaluatedItems(schema, value, evaluated) && fits
    return isObject(value) ? this.#unevaluatedProperties(schema, value, evaluated) && fits : fits
  }

  #list(schema: SchemaObject, list: unknown[], evaluated: Evaluated | undefined): boolean {
    const { minItems, maxItems } = schema as Record<string, number>
    let fits = true
    if (minItems !== undefined && list.length < minItems)
      fits = this.#fail(`must NOT have fewer than ${minItems} items`)
    if (maxItems !== undefined && list.length > maxItems) fits = this.#fail(`must NOT have more than ${maxItems} items`)
    // Before draft 2020-12, a list under `items` meant what `prefixItems` means now, and `additionalItems` applied to the rest.
    const old = Array.isArray(schema['items'])
    const first = (old ? schema['items'] : schema['prefixItems']) as Schema[] | undefined
    const others = (old ? schema['additionalItems'] : schema['items']) as Schema | undefined
    for (const [index, one] of (first ?? []).entries()) {
      if (index >= list.length) break
      fits = this.#below(String(index), one, list[index]) && fits
    }
    const taken = first?.length ?? 0
    evaluated?.items(Math.min(taken, list.length))
    if (others !== undefined) {
      evaluated?.items(list.length)
      if (others === false) {
        if (list.length > taken) fits = this.#fail(`must NOT have more than ${taken} items`)
      } else if (others !== true) {
        for (let index = taken; index < list.length; index += 1) {
          fits = this.#below(String(index), others, list[index]) && fits
          if (this.#isOver(fits)) return false
        }
      }
    }
    if (schema['contains'] !== undefined) fits = this.#contains(schema, list, evaluated) && fits
    if (schema['uniqueItems'] === true) fits = this.#unique(list) && fits
    return fits
  }

  #contains(schema: SchemaObject, list: unknown[], evaluated: Evaluated | undefined): boolean {
    const least = (schema['minContains'] as number | undefined) ?? 1
    const most = schema['maxContains'] as number | undefined
    let count = 0
    for (const [index, item] of list.entries()) {
      if (this.#attempt(schema['contains'] as Schema, item, undefined) !== null) continue
      count += 1
      evaluated?.item(index)
    }
    if (count >= least && (most === undefined || count <= most)) return true
    return this.#fail(
      most === undefined
        ? `must contain at least ${least} valid item(s)`
        : `must contain at least ${least} and no more than ${most} valid item(s)`,
    )
  }

  /** Compares the canonical JSON of the items, so that the work is linear in the length of the list. */
  #unique(list: unknown[]): boolean {
    const places = new Map<string, number>()
    for (const [index, item] of list.entries()) {
      const text = sortedJson(item)
      this.#steps.spend(1 + text.length / charsPerStep)
      const earlier = places.get(text)
      if (earlier !== undefined)
        return this.#fail(`must NOT have duplicate items (items ## ${earlier} and ${index} are identical)`)
      places.set(text, index)
    }
    return true
  }

  #object(schema: SchemaObject, value: SchemaObject, evaluated: Evaluated | undefined): boolean {
    const keys = Object.keys(value)
    const { minProperties, maxProperties } = schema as Record<string, number>
    let fits = true
    if (minProperties !== undefined && keys.length < minProperties)
      fits = this.#fail(`must NOT have fewer than ${minProperties} properties`)
    if (maxProperties !== undefined && keys.length > maxProperties)
      fits = this.#fail(`must NOT have more than ${maxProperties} properties`)
    for (const name of (schema['required'] as string[] | undefined) ?? []) {
      this.#steps.spend(1)
      if (!Object.hasOwn(value, name)) fits = this.#fail(`must have required property '${name.slice(0, nameCharsMax)}'`)
    }
    fits = this.#dependent(schema, value, evaluated) && fits
    return this.#properties(schema, value, keys, evaluated) && fits
  }

  #properties(schema: SchemaObject, value: SchemaObject, keys: string[], evaluated: Evaluated | undefined): boolean {
    const properties = (schema['properties'] as SchemaObject | undefined) ?? {}
    const patterns = Object.entries((schema['patternProperties'] as SchemaObject | undefined) ?? {})
    const others = schema['additionalProperties'] as Schema | undefined
    const names = schema['propertyNames'] as Schema | undefined
    let fits = true
    for (const key of keys) {
      this.#steps.spend(1)
      if (names !== undefined) {
        const errors = this.#attempt(names, key, undefined)
        if (errors !== null) {
          this.#keep(errors)
          fits = this.#fail(`property name must be valid (${key.slice(0, nameCharsMax)})`)
        }
      }
      let known = false
      if (Object.hasOwn(properties, key)) {
        known = true
        fits = this.#below(key, properties[key] as Schema, value[key]) && fits
      }
      for (const [pattern, inner] of patterns) {
        // It is unknown which keys an unusable pattern matches, so no key may be refused as additional.
        if (this.#schema.patterns.find(pattern, this.#steps) === undefined) known = true
        else if (matches(pattern, key, this.#schema.patterns, this.#steps)) {
          known = true
          fits = this.#below(key, inner as Schema, value[key]) && fits
        }
      }
      if (!known && others !== undefined) {
        known = true
        if (others === false) fits = this.#fail(`must NOT have additional properties (${key.slice(0, nameCharsMax)})`)
        else fits = this.#below(key, others, value[key]) && fits
      }
      if (known) evaluated?.property(key)
      if (this.#isOver(fits)) return false
    }
    return fits
  }

  #dependent(schema: SchemaObject, value: SchemaObject, evaluated: Evaluated | undefined): boolean {
    let fits = true
    for (const word of ['dependentRequired', 'dependentSchemas', 'dependencies']) {
      for (const [name, rule] of Object.entries((schema[word] as SchemaObject | undefined) ?? {})) {
        this.#steps.spend(1)
        if (!Object.hasOwn(value, name)) continue
        if (!Array.isArray(rule)) {
          fits = this.#inPlace(rule as Schema, value, evaluated) && fits
          continue
        }
        for (const needed of rule as string[]) {
          this.#steps.spend(1)
          if (!Object.hasOwn(value, needed))
            fits = this.#fail(`must have property ${needed} when property ${name} is present`)
        }
      }
    }
    return fits
  }

  /** Applies another schema to the same value and keeps its errors. */
  #inPlace(schema: Schema, value: unknown, evaluated: Evaluated | undefined): boolean {
    const errors = this.#attempt(schema, value, evaluated)
    if (errors !== null) this.#keep(errors)
    return errors === null
  }

  #combined(schema: SchemaObject, value: unknown, evaluated: Evaluated | undefined): boolean {
    let fits = true
    const target = this.#schema.targets.get(schema)
    if (target !== undefined) fits = this.#inPlace(target, value, evaluated) && fits
    for (const one of (schema['allOf'] as Schema[] | undefined) ?? []) {
      if (this.#isOver(fits)) return false
      fits = this.#inPlace(one, value, evaluated) && fits
    }
    if (this.#isOver(fits)) return false
    if (schema['anyOf'] !== undefined) fits = this.#anyOf(schema['anyOf'] as Schema[], value, evaluated) && fits
    if (schema['oneOf'] !== undefined) fits = this.#oneOf(schema['oneOf'] as Schema[], value, evaluated) && fits
    if (schema['not'] !== undefined && this.#attempt(schema['not'] as Schema, value, undefined) === null)
      fits = this.#fail('must NOT be valid')
    if (schema['if'] !== undefined) {
      const branch = this.#attempt(schema['if'] as Schema, value, evaluated) === null ? 'then' : 'else'
      const chosen = schema[branch] as Schema | undefined
      if (chosen !== undefined && !this.#inPlace(chosen, value, evaluated))
        fits = this.#fail(`must match "${branch}" schema`)
    }
    return fits
  }

  #anyOf(schemas: Schema[], value: unknown, evaluated: Evaluated | undefined): boolean {
    const failed: SchemaError[] = []
    let fits = false
    for (const schema of schemas) {
      const errors = this.#attempt(schema, value, evaluated)
      if (errors !== null) failed.push(...errors.slice(0, errorsMax - failed.length))
      else {
        fits = true
        // The other schemas matter only if evaluated properties and items are tracked.
        if (evaluated === undefined) break
      }
    }
    if (fits) return true
    this.#keep(failed)
    return this.#fail('must match a schema in anyOf')
  }

  #oneOf(schemas: Schema[], value: unknown, evaluated: Evaluated | undefined): boolean {
    const failed: SchemaError[] = []
    let matches = 0
    for (const schema of schemas) {
      const errors = this.#attempt(schema, value, evaluated)
      if (errors === null) matches += 1
      else failed.push(...errors.slice(0, errorsMax - failed.length))
    }
    if (matches === 1) return true
    if (matches === 0) this.#keep(failed)
    return this.#fail('must match exactly one schema in oneOf')
  }

  #unevaluatedProperties(schema: SchemaObject, value: SchemaObject, evaluated: Evaluated): boolean {
    const rule = schema['unevaluatedProperties'] as Schema | undefined
    if (rule === undefined) return true
    let fits = true
    for (const key of Object.keys(value)) {
      this.#steps.spend(1)
      if (evaluated.hasProperty(key)) continue
      if (rule === false) fits = this.#fail(`must NOT have unevaluated properties (${key.slice(0, nameCharsMax)})`)
      else fits = this.#below(key, rule, value[key]) && fits
      evaluated.property(key)
    }
    return fits
  }

  #unevaluatedItems(schema: SchemaObject, list: unknown[], evaluated: Evaluated): boolean {
    const rule = schema['unevaluatedItems'] as Schema | undefined
    if (rule === undefined) return true
    let fits = true
    for (const [index, item] of list.entries()) {
      this.#steps.spend(1)
      if (evaluated.hasItem(index)) continue
      if (rule === false) fits = this.#fail(`must NOT have unevaluated items (${index})`)
      else fits = this.#below(String(index), rule, item) && fits
    }
    evaluated.items(list.length)
    return fits
  }
}
