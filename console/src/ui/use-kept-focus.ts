// For a part of the page that goes away while it has the focus, a form that was sent for example. The browser would give
// the focus to the page as a whole, and a screen reader would lose its place.

import { type FocusEvent, type MouseEvent, type RefObject, useEffect, useRef } from 'react'

/** Returns handlers for the part. When it has gone, `to` gets the focus, unless the person has moved on meanwhile. */
export function useKeptFocus(isThere: boolean, to: RefObject<HTMLElement | null>) {
  const hadFocus = useRef(false)
  useEffect(() => {
    if (isThere || !hadFocus.current) return
    hadFocus.current = false
    if (document.activeElement === document.body) to.current?.focus({ preventScroll: true })
  }, [isThere])
  return {
    onFocus: () => {
      hadFocus.current = true
    },
    onBlur: ({ relatedTarget }: FocusEvent) => {
      // Without a next element the focus was not moved by the person: a button was disabled or removed.
      if (relatedTarget !== null) hadFocus.current = false
    },
  }
}

/** Whether a click came from a key. After a touch, a field with the focus would open the keyboard of a phone. */
export function isByKeyboard({ detail }: MouseEvent): boolean {
  return detail === 0
}
