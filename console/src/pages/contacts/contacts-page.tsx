// Contacts: the list at `/contacts?q=…&tag=…&page=…`, and one contact at `/contacts/<id>`.

import { useLocation } from 'wouter'
import { ContactDetail } from './contact-detail.tsx'
import { ContactList } from './contact-list.tsx'

export default function ContactsPage() {
  const [location] = useLocation()
  const [, , named = ''] = location.split('/')
  return named === '' ? <ContactList /> : <ContactDetail key={named} id={decoded(named)} />
}

/** Somebody may have typed the address. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
