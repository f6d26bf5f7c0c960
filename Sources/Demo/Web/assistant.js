/** The author of scripted replies. It is in no conversation, so no list of participants has it (SQL/assistant.sql). */
export const ASSISTANT = { id: "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", name: "Assistant", color: "#0f766e", symbol: "star" };

const CALL = "@assistant";

/**
 * A message for the assistant. Without words of one's own it is a question whose answer says what one sees.
 * @param {string} text
 * @returns {string}
 */
export function questionOf(text) {
  if (isQuestion(text)) return text;
  return `${CALL} ${text.trim() || "What is this reply?"}`;
}

/** @param {string} body of a message */
export function isQuestion(body) {
  return body.slice(0, CALL.length).toLowerCase() === CALL;
}

/**
 * The stream of the reply to a question.
 * @param {string} conversationId
 * @param {string} localId of the message that asks
 */
export function streamName(conversationId, localId) {
  return `reply/${conversationId}/${localId}`;
}
