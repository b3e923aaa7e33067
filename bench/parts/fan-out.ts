// One run of 50 tokens per second with many readers: the CPU time of one delta for one reader.

import { median } from '../figures.ts'
import { cpuOf, load, loadOn, type Child } from '../processes.ts'
import { type Bench, chatBody, type Comparison, polylogLoad, proxyLoad, urlOf } from '../servers.ts'

const warmUp = { streams: 10, rounds: 50, model: 'bench-200-0' }

export async function fanOut(bench: Bench): Promise<Comparison[]> {
  const proxy = await bench.proxy()
  const server = await bench.polylog()
  const raw: number[] = []
  const ours: number[] = []
  // A round has 250 deltas. Without this, most of the code would still be interpreted when it is measured.
  await loadOn(proxy, proxyLoad(proxy, warmUp))
  await loadOn(server, polylogLoad(server, warmUp))
  for (let round = 0; round <= Math.min(2, bench.rounds); round++) {
    const one = await cpuPerDelivery(proxy, 100, broadcast)
    const two = await cpuPerDelivery(server, 100, followRun)
    if (round === 0) continue
    raw.push(one)
    ours.push(two)
  }
  return [
    {
      what: 'one run, 100 readers, 50 tokens/s: CPU of a delivery',
      unit: 'µs',
      raw: median(raw),
      ours: median(ours),
      goal: '≤ 12 µs',
    },
  ]
}

/** Starts a run, and says where its readers find it. */
type StartRun = (child: Child) => Promise<{ url: string; marker: string }>

export async function cpuPerDelivery(child: Child, readers: number, start: StartRun): Promise<number> {
  const { url, marker } = await start(child)
  const before = cpuOf(child.pid)
  const { deltas, failed } = await load({ url, method: 'GET', streams: readers, marker })
  if (failed > 0) throw new Error(`${failed} of ${readers} readers failed`)
  return ((cpuOf(child.pid).all - before.all) / deltas) * 1e6
}

/** The readers have joined when the process of the client runs, so the run begins a moment later. */
async function broadcast(child: Child): Promise<{ url: string; marker: string }> {
  setTimeout(() => {
    void fetch(urlOf(child, '/broadcast'), { method: 'POST', body: chatBody('bench-200-20') }).then((response) =>
      response.text(),
    )
  }, 1500)
  return { url: urlOf(child, '/join'), marker: '"content"' }
}

export async function followRun(child: Child): Promise<{ url: string; marker: string }> {
  const response = await fetch(urlOf(child, '/v1/agent/chat'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: chatBody('bench-250-20'),
  })
  void response.body?.cancel()
  return {
    url: urlOf(child, `/v1/agent/runs/${response.headers.get('x-run-id')}/stream`),
    marker: 'event: agent.delta',
  }
}
