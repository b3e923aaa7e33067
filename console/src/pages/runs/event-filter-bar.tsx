// Which events are listed: a text, groups, and only those in which something went wrong.

import type { Ref } from 'react'
import { useLocale, useWords } from '../../i18n/words.ts'
import type { EventFilter } from '../../run/event-filter.ts'
import { type EventGroup, eventGroups } from '../../run/event-groups.ts'
import { SearchField } from '../../ui/search-field.tsx'
import { runsWords } from './words.ts'
import './event-filter-bar.css'

type EventFilterBarProps = {
  filter: EventFilter
  onChange(filter: EventFilter): void
  /** How many events fit; null without a filter. */
  found: number | null
  isDone: boolean
  count: number
  searchRef: Ref<HTMLInputElement>
}

export function EventFilterBar({ filter, onChange, found, isDone, count, searchRef }: EventFilterBarProps) {
  const words = useWords(runsWords)
  const locale = useLocale()
  const toggle = (group: EventGroup) => {
    const has = filter.groups.includes(group)
    onChange({
      ...filter,
      groups: eventGroups.filter((each) => (each === group ? !has : filter.groups.includes(each))),
    })
  }
  return (
    <>
      <div className="event-search">
        <SearchField
          ref={searchRef}
          label={words.search}
          value={filter.text}
          onChange={(text) => onChange({ ...filter, text })}
        />
      </div>
      <span className="event-found faint numbers" role="status">
        {found === null
          ? null
          : isDone
            ? words.found(found.toLocaleString(locale), count.toLocaleString(locale))
            : words.searching}
      </span>
      <div className="event-chips" role="group" aria-label={words.filters}>
        {eventGroups.map((group) => (
          <button
            key={group}
            type="button"
            className="event-chip"
            data-group={group}
            aria-pressed={filter.groups.includes(group)}
            onClick={() => toggle(group)}
          >
            <span className="event-dot" />
            {words[`group_${group}`]}
          </button>
        ))}
        <button
          type="button"
          className="event-chip"
          data-group="problem"
          aria-pressed={filter.problems}
          onClick={() => onChange({ ...filter, problems: !filter.problems })}
        >
          <span className="event-dot" />
          {words.problems}
        </button>
      </div>
    </>
  )
}
