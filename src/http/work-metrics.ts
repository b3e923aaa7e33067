// The metrics of the work in runs: tokens, cost, times and retries of models, and times of
// tools. Names of models and tools can come from outside, so only the first ones get time
// series of their own.

import { Counter, Histogram, type Registry } from 'prom-client'
import type { MeteredUsage, RunMeter } from '../runs/run-dependencies.ts'
import type { MetricCalls } from './metric-calls.ts'

const labelsMax = 100
const otherLabel = 'other'

/** Answers of models take from a second to minutes. */
const answerBuckets = [0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300]
/** Most runs start at once; some wait for the run before them in their conversation. */
const queueBuckets = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800]
const toolBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

export function createWorkMetrics(registry: Registry, calls: MetricCalls): RunMeter {
  const registers = [registry]
  const ofModel = ['provider', 'model'] as const
  const tokens = new Counter({
    name: 'polylog_model_tokens_total',
    help: 'Tokens by provider and model. The kinds cached and cache_write are part of input, and reasoning is part of output.',
    labelNames: [...ofModel, 'kind'] as const,
    registers,
  })
  const cost = new Counter({
    name: 'polylog_model_cost_usd_total',
    help: 'Cost in US dollars of the steps whose cost is known.',
    labelNames: ofModel,
    registers,
  })
  const unpriced = new Counter({
    name: 'polylog_model_unpriced_steps_total',
    help: 'Steps whose cost is not known.',
    labelNames: ofModel,
    registers,
  })
  const firstPart = new Histogram({
    name: 'polylog_model_first_token_seconds',
    help: 'Time from the request to the first part of the answer, with retries.',
    labelNames: ofModel,
    buckets: answerBuckets,
    registers,
  })
  const steps = new Histogram({
    name: 'polylog_model_step_seconds',
    help: 'Time from the request to the end of the answer.',
    labelNames: ofModel,
    buckets: answerBuckets,
    registers,
  })
  const retries = new Counter({
    name: 'polylog_model_retries_total',
    help: 'Requests that were sent again because the one before failed.',
    labelNames: ofModel,
    registers,
  })
  const fallbacks = new Counter({
    name: 'polylog_model_fallbacks_total',
    help: 'Runs that went on with another model because this one could not answer, by the code of the error.',
    labelNames: [...ofModel, 'reason'] as const,
    registers,
  })
  const queue = new Histogram({
    name: 'polylog_queue_seconds',
    help: 'How long runs waited from their acceptance until they were first taken up.',
    buckets: queueBuckets,
    registers,
  })
  const tools = new Histogram({
    name: 'polylog_tool_seconds',
    help: 'How long tools ran, by tool and outcome.',
    labelNames: ['tool', 'outcome'] as const,
    buckets: toolBuckets,
    registers,
  })
  const modelName = boundedLabel()
  const toolName = boundedLabel()

  const labelsOf = (name: string) => {
    const known = modelName(name)
    const slash = known.indexOf('/')
    return slash === -1
      ? { provider: otherLabel, model: otherLabel }
      : { provider: known.slice(0, slash), model: known.slice(slash + 1) }
  }

  const countUsage = ({ model, usage, costMicroUsd }: MeteredUsage) => {
    const labels = labelsOf(model)
    const counts = {
      input: usage?.inputTokens,
      cached: usage?.cachedTokens,
      cache_write: usage?.cacheWriteTokens,
      output: usage?.outputTokens,
      reasoning: usage?.reasoningTokens,
    }
    for (const [kind, count] of Object.entries(counts)) if (count !== undefined) tokens.inc({ ...labels, kind }, count)
    if (costMicroUsd === undefined) unpriced.inc(labels)
    else cost.inc(labels, costMicroUsd / 1_000_000)
  }

  return {
    stepDone: (step) =>
      calls.add(() => {
        const { seconds, firstPartSeconds } = step
        const labels = labelsOf(step.model)
        countUsage(step)
        steps.observe(labels, seconds)
        if (firstPartSeconds !== undefined) firstPart.observe(labels, firstPartSeconds)
      }),
    answerDiscarded: countUsage,
    modelRetried: (model) => retries.inc(labelsOf(model)),
    runStarted: (waitedSeconds) => calls.add(() => queue.observe(waitedSeconds)),
    modelFellBack: (model, reason) => fallbacks.inc({ ...labelsOf(model), reason }),
    toolDone: ({ tool, outcome, seconds }) => tools.observe({ tool: toolName(tool), outcome }, seconds),
  }
}

/** Returns the first `labelsMax` different values as they are, and `otherLabel` for the rest. */
function boundedLabel(): (value: string) => string {
  const known = new Set<string>()
  return (value) => {
    if (known.has(value)) return value
    if (known.size >= labelsMax) return otherLabel
    known.add(value)
    return value
  }
}
