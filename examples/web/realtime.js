// A client of Supabase Realtime's protocol in one file, for pages without a build step.
//
// It has the names and shapes of supabase-js (realtime-js), as far as these examples use them, so a page moves to the real
// one by its import alone:
//
//     import { RealtimeClient } from './realtime.js'                                  // this file
//     import { RealtimeClient } from 'https://esm.sh/@supabase/realtime-js'           // the real one, from a CDN
//     import { RealtimeClient } from '@supabase/realtime-js'                          // with npm and a bundler
//
// The frames of version 1 are JSON objects, {topic, event, payload, ref, join_ref}; docs/asyncapi.yaml describes each.

const HEARTBEAT = 25_000      // the hub closes what is silent for 60 s
const LONGEST_PAUSE = 15_000

export class RealtimeClient {
  #address; #socket; #refs = 0; #attempts = 0; #channels = new Map()

  constructor(url, { params = {} } = {}) {
    this.#address = `${url}/websocket?${new URLSearchParams({ ...params, vsn: '1.0.0' })}`
    setInterval(() => this.send({ topic: 'phoenix', event: 'heartbeat', payload: {} }), HEARTBEAT)
  }

  channel(name, { config = {} } = {}) {
    const channel = new Channel(this, `realtime:${name}`, config)
    this.#channels.set(channel.topic, channel)
    if (!this.#socket) this.#connect()
    return channel
  }

  forget(channel) { this.#channels.delete(channel.topic) }

  // False where there is no connection.
  send(frame) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false
    frame.ref ??= String(++this.#refs)
    this.#socket.send(JSON.stringify({ join_ref: null, ...frame }))
    return frame.ref
  }

  #connect() {
    const socket = this.#socket = new WebSocket(this.#address)
    socket.onopen = () => { this.#attempts = 0; for (const channel of this.#channels.values()) channel.join() }
    socket.onmessage = ({ data }) => { const frame = JSON.parse(data); this.#channels.get(frame.topic)?.take(frame) }
    socket.onclose = () => {
      for (const channel of this.#channels.values()) channel.lost()
      // A random part of a bound that doubles: a thousand pages do not come back in the same moment.
      setTimeout(() => this.#connect(), Math.random() * Math.min(LONGEST_PAUSE, 1000 * 2 ** this.#attempts++))
    }
  }
}

class Channel {
  #client; #config; #listeners = []; #tell = () => {}; #wanted = false; #joinRef; #tracked; #present = {}

  constructor(client, topic, config) { Object.assign(this, { topic }); this.#client = client; this.#config = config }

  // on('broadcast', {event}), on('presence', {event: 'sync'}), on('postgres_changes', {event, schema, table, filter})
  on(type, filter, callback) { this.#listeners.push({ type, filter, callback }); return this }

  // `tell` gets 'SUBSCRIBED', from which on nothing is missed, or 'CHANNEL_ERROR' and why.
  subscribe(tell = () => {}) { this.#tell = tell; this.#wanted = true; this.join(); return this }

  unsubscribe() { this.#wanted = false; this.#push('phx_leave', {}); this.#client.forget(this) }

  send({ type, event, payload }) { return this.#push(type, { type, event, payload }) }
  track(payload) { this.#tracked = payload; return this.#push('presence', { type: 'presence', event: 'track', payload }) }
  untrack() { this.#tracked = undefined; return this.#push('presence', { type: 'presence', event: 'untrack' }) }
  presenceState() { return this.#present }

  join() {
    if (!this.#wanted) return
    const wanted = (type) => this.#listeners.filter((listener) => listener.type === type)
    const config = {
      ...this.#config, postgres_changes: wanted('postgres_changes').map(({ filter }) => filter),
      presence: { enabled: wanted('presence').length > 0, ...this.#config.presence },
    }
    this.#joinRef = this.#push('phx_join', { config }) || undefined
  }

  lost() { this.#joinRef = undefined }

  #push(event, payload) { return this.#client.send({ topic: this.topic, event, payload, join_ref: this.#joinRef ?? null }) }

  #emit(type, event, value) {
    for (const { type: kind, filter, callback } of this.#listeners)
      if (kind === type && (filter.event === event || filter.event === '*')) callback(value)
  }

  take({ event, payload, ref }) {
    switch (event) {
      case 'phx_reply':
        if (ref !== this.#joinRef) return
        if (payload.status !== 'ok') return this.#tell('CHANNEL_ERROR', new Error(payload.response.reason))
        if (this.#tracked) this.track(this.#tracked)         // a presence belongs to a connection
        return this.#tell('SUBSCRIBED')
      case 'phx_error': return void setTimeout(() => this.join(), 1000 + 1000 * Math.random())
      case 'broadcast': return this.#emit('broadcast', payload.event, payload)
      case 'presence_state': this.#present = {}; this.#joins(payload); return this.#emit('presence', 'sync')
      case 'presence_diff': this.#leaves(payload.leaves); this.#joins(payload.joins); return this.#emit('presence', 'sync')
      case 'postgres_changes': {
        const { type: eventType, record = {}, old_record = {}, ...rest } = payload.data
        return this.#emit('postgres_changes', eventType, { ...rest, eventType, new: record, old: old_record })
      }
      case 'system': if (payload.status === 'error') this.#tell('CHANNEL_ERROR', new Error(payload.message))
    }
  }

  #joins(joins) {
    for (const [key, { metas }] of Object.entries(joins)) {
      const news = metas.map(({ phx_ref, phx_ref_prev, ...meta }) => ({ presence_ref: phx_ref, ...meta }))
      const refs = new Set(metas.map(({ phx_ref }) => phx_ref))
      this.#present[key] = [...(this.#present[key] ?? []).filter((one) => !refs.has(one.presence_ref)), ...news]
    }
  }

  #leaves(leaves) {
    for (const [key, { metas }] of Object.entries(leaves)) {
      const refs = new Set(metas.map(({ phx_ref }) => phx_ref))
      const rest = (this.#present[key] ?? []).filter((one) => !refs.has(one.presence_ref))
      if (rest.length) this.#present[key] = rest; else delete this.#present[key]
    }
  }
}
