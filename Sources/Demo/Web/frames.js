/**
 * Frames of protocol version 2.0.0: JSON arrays `[join_ref, ref, topic, event, payload]`, and two binary kinds for
 * broadcasts, 3 towards the hub and 4 from it. Nothing here knows sockets or channels.
 *
 * @typedef {{joinRef: string|null, ref: string|null, topic: string, event: string, payload: any}} Frame
 */

const PUSH = 3;
const BROADCAST = 4;
const RAW = 0;
const JSON_TEXT = 1;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * @param {Frame} frame
 * @returns {string}
 */
export function encode({ joinRef, ref, topic, event, payload }) {
  return JSON.stringify([joinRef, ref, topic, event, payload]);
}

/**
 * A broadcast as a binary frame of kind 3; an ArrayBuffer or a view goes out raw, anything else as JSON.
 * @param {{joinRef: string, ref: string, topic: string, event: string, payload: any}} broadcast
 * @returns {Uint8Array}
 */
export function encodeBroadcast({ joinRef, ref, topic, event, payload }) {
  const raw = payload instanceof ArrayBuffer || ArrayBuffer.isView(payload);
  const fields = [joinRef, ref, topic, event].map((field) => encoder.encode(field));
  if (fields.some((field) => field.length > 255)) throw new RangeError("a broadcast's fields hold 255 bytes at most");
  const noMetadata = 0;
  const header = [PUSH, ...fields.map((field) => field.length), noMetadata, raw ? RAW : JSON_TEXT];
  const body = raw ? bytesOf(payload) : encoder.encode(JSON.stringify(payload));
  return concatenate([Uint8Array.from(header), ...fields, body]);
}

/**
 * @param {string|ArrayBuffer} data what the socket delivered
 * @returns {Frame|null} null for something that is no frame: an odd frame must not end the connection
 */
export function decode(data) {
  try {
    if (typeof data !== "string") return decodeBroadcast(new Uint8Array(data));
    const [joinRef, ref, topic, event, payload] = JSON.parse(data);
    return { joinRef, ref, topic, event, payload };
  } catch {
    return null;
  }
}

function decodeBroadcast(bytes) {
  const [kind, topicLength, eventLength, metaLength, encoding] = bytes;
  if (kind !== BROADCAST) return null;
  let offset = 5;
  const take = (length) => bytes.subarray(offset, (offset += length));
  const topic = decoder.decode(take(topicLength));
  const event = decoder.decode(take(eventLength));
  const meta = metaLength > 0 ? JSON.parse(decoder.decode(take(metaLength))) : undefined;
  const rest = bytes.subarray(offset);
  const payload = encoding === JSON_TEXT ? JSON.parse(decoder.decode(rest)) : rest.slice().buffer;
  return { joinRef: null, ref: null, topic, event: "broadcast", payload: { type: "broadcast", event, payload, meta } };
}

function bytesOf(payload) {
  return ArrayBuffer.isView(payload)
    ? new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength)
    : new Uint8Array(payload);
}

function concatenate(parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
