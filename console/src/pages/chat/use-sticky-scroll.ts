// Keeps a growing text in view while the person is at its end, and leaves them alone when they have scrolled up to read.

import { useCallback, useEffect, useRef, useState } from 'react'

/** This close to the end counts as the end. */
const nearPixels = 48

export function useStickyScroll() {
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const sticks = useRef(true)
  const [isAtEnd, setAtEnd] = useState(true)
  const toEnd = useCallback(() => {
    sticks.current = true
    const element = scroller.current
    if (element !== null) element.scrollTop = element.scrollHeight
  }, [])
  useEffect(() => {
    const element = scroller.current
    const inside = content.current
    if (element === null || inside === null) return
    let seen = { top: element.scrollTop, height: element.scrollHeight, window: element.clientHeight }
    const look = () => {
      const { scrollTop, scrollHeight, clientHeight } = element
      const isNear = scrollHeight - scrollTop - clientHeight < nearPixels
      // A change of size moves the text too; only without one has the person scrolled up.
      const isSameSize = scrollHeight === seen.height && clientHeight === seen.window
      // One press of an arrow key leaves the end too, although it is still near.
      if (scrollTop < seen.top && isSameSize) sticks.current = false
      else if (isNear) sticks.current = true
      seen = { top: scrollTop, height: scrollHeight, window: clientHeight }
      setAtEnd(isNear || sticks.current)
    }
    const watch = new ResizeObserver(() => {
      if (sticks.current) element.scrollTop = element.scrollHeight
      seen = { top: element.scrollTop, height: element.scrollHeight, window: element.clientHeight }
    })
    watch.observe(inside)
    watch.observe(element)
    element.addEventListener('scroll', look, { passive: true })
    return () => {
      watch.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [])
  return { scroller, content, isAtEnd, toEnd }
}
