/// The app's calls that a channel has not answered yet: those that wait for the join or the leave, messages that wait
/// for the channel, and frames that wait for the hub's reply.
///
/// A part of `ChannelMachine`. Pure: its methods return the answers to give, in order.
package struct PendingCalls {
    /// A message that waits until the channel is joined.
    struct Held {
        let call: CallID
        let body: ClientMessage.Body
        let deadline: Moment
    }

    /// A frame that the hub answers.
    struct Request {
        /// Nil if no task waits for the answer.
        var call: CallID?
        /// The purpose, for the sentence of a timeout.
        let purpose: String
        let deadline: Moment
    }

    /// Calls of `subscribe` that wait for the join, and for row changes to be live.
    private var subscribers: [CallID] = []
    /// Calls of `leave` that wait for the hub.
    private var leavers: [CallID] = []
    private var held: [Held] = []
    /// Frames that the hub has not answered yet, by ref.
    private var requests: [String: Request] = [:]

    /// The time at which the first of them has waited for too long.
    var nextDeadline: Moment? { (held.map(\.deadline) + requests.values.map(\.deadline)).min() }

    mutating func add(subscriber call: CallID) { subscribers.append(call) }

    mutating func add(leaver call: CallID) { leavers.append(call) }

    mutating func addRequest(_ request: Request, ref: String) { requests[ref] = request }

    /// - Returns: false if the limit of waiting messages is reached.
    mutating func addHeld(_ message: Held) -> Bool {
        guard held.count < ChannelMachine.heldLimit else { return false }
        held.append(message)
        return true
    }

    /// Removes and returns the messages that have waited for the channel.
    mutating func takeHeld() -> [Held] {
        defer { held = [] }
        return held
    }

    /// Removes and returns the request with this ref, which the hub has answered.
    mutating func takeRequest(ref: String) -> Request? { requests.removeValue(forKey: ref) }

    /// Handles the cancellation of a task that waits for a call.
    mutating func cancelCall(_ call: CallID) -> [ChannelAction] {
        let waits =
            subscribers.contains(call) || held.contains { $0.call == call }
            || requests.values.contains { $0.call == call }
        subscribers.removeAll { $0 == call }
        held.removeAll { $0.call == call }
        for (ref, request) in requests where request.call == call { requests[ref]?.call = nil }
        return waits ? [.answer(call, .cancelled)] : []
    }

    /// Ends calls that have waited for too long.
    mutating func endOverdue(_ now: Moment) -> [ChannelAction] {
        var answers: [ChannelAction] = []
        for message in held where message.deadline <= now {
            answers.append(.answer(message.call, .notConnected("There was no connection in time; it was not sent.")))
        }
        held.removeAll { $0.deadline <= now }
        for (ref, request) in requests where request.deadline <= now {
            requests[ref] = nil
            if let call = request.call { answers.append(.answer(call, .timedOut(request.purpose))) }
        }
        return answers
    }

    /// Answers all calls that wait for the join; nil is success.
    mutating func endSubscribers(_ error: RoostError?) -> [ChannelAction] {
        defer { subscribers = [] }
        return subscribers.map { .answer($0, error) }
    }

    /// Answers all calls that wait for the channel to be joined, to subscribe or to send.
    mutating func endWaiting(_ error: RoostError) -> [ChannelAction] {
        endSubscribers(error) + takeHeld().map { .answer($0.call, error) }
    }

    /// Answers all requests that wait for the hub.
    mutating func endRequests(_ error: RoostError) -> [ChannelAction] {
        defer { requests = [:] }
        return requests.values.compactMap { request in request.call.map { .answer($0, error) } }
    }

    /// Answers all calls that wait for the leave, which has happened.
    mutating func endLeavers() -> [ChannelAction] {
        defer { leavers = [] }
        return leavers.map { .answer($0, nil) }
    }
}
