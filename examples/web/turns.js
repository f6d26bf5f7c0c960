// A question by POST whose answer comes as events in the response, and goes on where it was if the connection breaks.
import { me } from './page.js'

const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))
const hub = (given.hub ?? 'ws://127.0.0.1:4000').replace(/^ws/, 'http')

/** Calls `take(name, data)` for each event. Ends with the reply; `signal` interrupts it, and the hub then cancels it. */
export async function ask(path, text, take, signal) {
  const headers = { authorization: `Bearer ${given.token}`, 'content-type': 'application/json' }
  let response = await fetch(hub + path, { method: 'POST', headers, signal, body: JSON.stringify({ user: me.id, text }) })
  for (let last; ;) {
    if (response.status === 204) return
    if (!response.ok) throw new Error((await response.json()).error)
    try {
      for await (const { id, event, data } of events(response.body)) {
        last = id
        take(event, JSON.parse(data))
      }
      return
    } catch (error) {
      if (signal?.aborted || last === undefined) throw error
    }
    await new Promise((done) => setTimeout(done, 500))
    response = await fetch(`${hub}${path}?user=${encodeURIComponent(me.id)}`, {
      headers: { ...headers, 'last-event-id': last }, signal })
  }
}

/** The events of an event stream (WHATWG HTML, 9.2.6), as far as the hub writes them. */
async function* events(body) {
  let rest = ''
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split('\n\n')
    rest = blocks.pop()
    for (const block of blocks) {
      const fields = { event: 'message', data: [] }
      for (const line of block.split('\n')) {
        const [, name, value] = line.match(/^(\w+): ?(.*)$/) ?? []
        if (name === 'data') fields.data.push(value)
        else if (name) fields[name] = value
      }
      if (fields.data.length > 0) yield { ...fields, data: fields.data.join('\n') }
    }
  }
}
