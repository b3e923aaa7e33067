// The nodes of the cluster: which are there, how full each is, and since when.

import { useLocale, useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import type { ListedNode, Overview } from './overview.ts'
import { operationWords } from './words.ts'

export function Nodes({ overview: { nodes, node: answering } }: { overview: Overview }) {
  const words = useWords(operationWords)
  return (
    <section className="stack" aria-label={words.nodes}>
      <h2>{words.nodes}</h2>
      <div className="table-box operations-runs" tabIndex={0} role="region" aria-label={words.nodes}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{words.node}</th>
              <th scope="col">{words.status}</th>
              <th scope="col">{words.slots}</th>
              <th scope="col" className="table-wide">
                {words.version}
              </th>
              <th scope="col" className="table-number table-wide">
                {words.started}
              </th>
              <th scope="col" className="table-number table-wide">
                {words.seen}
              </th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((node) => (
              <tr key={node.id}>
                <td className="cut">
                  {withVisibleControls(node.name)}{' '}
                  {node.id === answering ? <span className="faint">{words.thisNode}</span> : null}
                </td>
                <td>
                  <NodeState node={node} />
                </td>
                <td>
                  <Slots node={node} />
                </td>
                <td className="table-wide faint">{withVisibleControls(node.version)}</td>
                <td className="table-number table-wide faint">
                  <TimeAgo at={node.startedAtMs} />
                </td>
                <td className="table-number table-wide faint">
                  <TimeAgo at={node.seenAtMs} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function NodeState({ node: { live, draining } }: { node: ListedNode }) {
  const words = useWords(operationWords)
  if (!live) return <Badge tone="bad">{words.gone}</Badge>
  return draining ? <Badge tone="warn">{words.draining}</Badge> : <Badge tone="good">{words.live}</Badge>
}

function Slots({ node: { running, capacity } }: { node: ListedNode }) {
  const locale = useLocale()
  return (
    <span className="row numbers">
      <span className="slots" aria-hidden="true">
        <span style={{ width: `${capacity === 0 ? 0 : Math.min(100, (running / capacity) * 100)}%` }} />
      </span>
      {running.toLocaleString(locale)} / {capacity.toLocaleString(locale)}
    </span>
  )
}
