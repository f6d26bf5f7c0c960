// What the pages of these examples share: where the hub is and who is looking, from the part of the address behind `#`,
// which a browser sends to nobody: chat.html#hub=ws://127.0.0.1:4000&token=…&id=ada&name=Ada
//
// In an app of your own, the token comes from your sign-in and never stands in an address.
import { RealtimeClient } from './realtime.js'

const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))

export const me = { id: given.id ?? crypto.randomUUID(), name: given.name ?? 'Somebody' }

export const client = new RealtimeClient(`${given.hub ?? 'ws://127.0.0.1:4000'}/realtime/v1`, {
  params: { apikey: given.token ?? '' },
})

// One of twelve colours, the same for everybody who looks at this id.
export const colour = (id) => `hsl(${([...id].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 12) * 30} 70% 40%)`

// Shows how the channel stands: <p id=state>.
export function showState(status, error) {
  const place = document.querySelector('#state')
  place.dataset.state = status
  place.textContent = error ? `${status}: ${error.message}` : status
}
