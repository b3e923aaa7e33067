// A histogram without labels for what happens with every token. It only counts; prom-client looks up labels for each value.

import type { Metric, Registry } from 'prom-client'

type Value = { metricName: string; labels: { le?: number | string }; value: number }

export class QuickHistogram {
  readonly name: string
  readonly help: string
  readonly type = 'histogram'
  readonly aggregator = 'sum'
  readonly #buckets: readonly number[]
  /** How many values are in each bucket and not in the one before it. The last one is for those above all bounds. */
  readonly #counts: number[]
  #sum = 0

  /** `buckets`: the upper bounds, in ascending order. */
  constructor(options: { name: string; help: string; buckets: readonly number[]; registry: Registry }) {
    const { name, help, buckets, registry } = options
    this.name = name
    this.help = help
    this.#buckets = buckets
    this.#counts = Array.from({ length: buckets.length + 1 }, () => 0)
    // The registry only uses the name and `get`.
    registry.registerMetric(this as unknown as Metric)
  }

  observe(value: number): void {
    const buckets = this.#buckets
    let index = 0
    while (index < buckets.length && value > (buckets[index] as number)) index += 1
    this.#counts[index] = (this.#counts[index] as number) + 1
    this.#sum += value
  }

  /** What the registry prints. */
  async get(): Promise<object> {
    const { name, help, type, aggregator } = this
    let count = 0
    const values: Value[] = this.#counts.map((inBucket, index) => {
      count += inBucket
      return { metricName: `${name}_bucket`, labels: { le: this.#buckets[index] ?? '+Inf' }, value: count }
    })
    values.push({ metricName: `${name}_sum`, labels: {}, value: this.#sum })
    values.push({ metricName: `${name}_count`, labels: {}, value: count })
    return { name, help, type, aggregator, values }
  }
}
