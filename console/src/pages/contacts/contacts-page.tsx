// Contacts: the list at `/contacts?q=…&tag=…&page=…`, and one contact at `/contacts/<id>`.

import { useLocation } from 'wouter'
import { pathPart } from '../../app/path-part.ts'
import { ContactDetail } from './contact-detail.tsx'
import { ContactList } from './contact-list.tsx'

export default function ContactsPage() {
  const [location] = useLocation()
  const id = pathPart(location)
  return id === null ? <ContactList /> : <ContactDetail key={id} id={id} />
}
