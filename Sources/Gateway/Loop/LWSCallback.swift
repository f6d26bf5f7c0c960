import CWebSockets
import Hub
import Wire

/// Where lws calls us. It finds the loop and the slot, and leaves the work to them.
func lwsCallback(
    _ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?,
    _ input: UnsafeMutableRawPointer?, _ length: Int
) -> Int32 {
    guard let wsi, let context = lws_get_context(wsi), let owner = lws_context_user(context) else { return 0 }
    return Unmanaged<EventLoop>.fromOpaque(owner)._withUnsafeGuaranteedRef { loop in
        loop.handle(reason, wsi, user, UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : length))
    }
}

extension EventLoop {
    func handle(
        _ reason: lws_callback_reasons, _ wsi: OpaquePointer, _ user: UnsafeMutableRawPointer?,
        _ bytes: UnsafeRawBufferPointer
    ) -> Int32 {
        // libuv closes handles behind the turn, right before it waits, and lws says so: that begins no turn, or the wait would
        // be counted as one.
        if reason != LWS_CALLBACK_WSI_DESTROY { counters.turnBegins() }
        switch reason {
        case LWS_CALLBACK_RECEIVE:
            return slot(user).map { received($0, wsi, bytes) } ?? operators.received(user, wsi, bytes)
        case LWS_CALLBACK_SERVER_WRITEABLE:
            guard let slot = slot(user) else { return operators.writable(user) }
            delivery.writable(slot)
            return 0
        case LWS_CALLBACK_RECEIVE_PONG:
            if let slot = slot(user) { pings.answered(by: slot, bytes) }
            return 0
        case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
            return slot(user).map { peerCloses($0, bytes) } ?? 0
        case LWS_CALLBACK_WS_SERVER_DROP_PROTOCOL:
            if let slot = slot(user) { lwsEnds(slot, wsi) }
            return 0
        case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
            upgrades.adopted(wsi)
            return 0
        case LWS_CALLBACK_WSI_DESTROY:
            destroyed(wsi)
            return 0
        case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
            return upgrades.has(wsi) ? 0 : -1
        case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
            return upgrades.has(wsi) ? 0 : 1
        case LWS_CALLBACK_ESTABLISHED:
            return established(wsi, user)
        case LWS_CALLBACK_CLOSED:
            if let slot = slot(user) {
                user?.storeBytes(of: 0, as: Slot.self)
                closed(slot)
            } else {
                operators.closed(user)
            }
            return 0
        default:
            return 0
        }
    }

    private func slot(_ user: UnsafeMutableRawPointer?) -> Slot? {
        guard let number = user?.load(as: Slot.self), number > 0 else { return nil }
        return number - 1
    }

    /// One piece of a message, or all of it.
    private func received(_ slot: Slot, _ wsi: OpaquePointer, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        delivery.heard(slot, second: second)
        counters.bytesReceived += bytes.count
        delivery.accounts[Int(slot)].bytesIn += bytes.count
        postponement.lastRead = delivery.sockets[Int(slot)].fd
        let isWhole = lws_is_final_fragment(wsi) != 0 && lws_remaining_packet_payload(wsi) == 0
        pace(slot, wsi, bytes: bytes.count, endsMessage: isWhole)
        let message: [UInt8]
        if isWhole, !partial.has(slot) {
            message = Array(bytes)
        } else {
            let (count, fits) = partial.append(bytes, of: slot, second: second)
            guard count <= rules.maximumMessageBytes else { return closeOversized(slot, wsi) }
            guard isWhole else { return fits ? 0 : closeUnfinished(slot, wsi) }
            message = partial.take(slot)
        }
        guard message.count <= rules.maximumMessageBytes else { return closeOversized(slot, wsi) }
        counters.framesReceived += 1
        delivery.accounts[Int(slot)].messagesIn &+= 1
        let isBinary = lws_frame_is_binary(wsi) != 0
        if !delivery.tracer.isIdle { delivery.trace(received: message, isBinary: isBinary, from: slot) }
        do {
            try hub.receiveMessage(message[...], isBinary: isBinary, from: slot, at: now())
        } catch {
            counters.malformed += 1
            logger.debug("dropped a malformed frame: \(error)")
            // What could be read is UTF-8. lws would look at each piece: also at a pong that comes in the middle of a
            // character, and call the text broken.
            if !isBinary, String(validating: message, as: UTF8.self) == nil {
                return close(slot, wsi, .invalidData, "The text is not UTF-8", "text that is not UTF-8")
            }
        }
        execute()
        return 0
    }

    /// Leaves a socket unread for a moment where it sent faster than it may.
    private func pace(_ slot: Slot, _ wsi: OpaquePointer, bytes: Int, endsMessage: Bool) {
        // The time of this turn: to look at a clock for each piece would cost more than to handle it.
        let pause = hub.pause(after: bytes, endsMessage: endsMessage, from: slot, at: libuv.turnTime)
        guard pause > 0 else { return }
        pauses.begin(slot, wsi, for: pause)
        // Nothing more will be read in this turn, so nothing is to wait for it.
        postponement.lastRead = -1
    }

    /// Once a second: where there is little room left, messages that are not finished in time end their sockets.
    func endSlowMessages() {
        for slot in partial.overdue(at: second, timeout: rules.bodyTimeout) {
            counters.unfinishedRefused += 1
            beginClosing(slot, .tryAgainLater, reason: "too many unfinished messages")
        }
    }

    /// All loops together hold more of unfinished messages than they may.
    private func closeUnfinished(_ slot: Slot, _ wsi: OpaquePointer) -> Int32 {
        counters.unfinishedRefused += 1
        let sentence = "too many unfinished messages (limits.unfinished_bytes)"
        return close(slot, wsi, .tryAgainLater, sentence, "too many unfinished messages")
    }

    private func closeOversized(_ slot: Slot, _ wsi: OpaquePointer) -> Int32 {
        let refusal = Refusal.over(.messageBytes, rules.maximumMessageBytes)
        hub.countRefusal(refusal)
        return close(slot, wsi, .messageTooBig, refusal.message, "message too large")
    }

    /// Ends the connection of which a message is being read. lws sends the close frame.
    ///
    /// - Parameters:
    ///   - sentence: for the peer.
    ///   - reason: for the log.
    private func close(
        _ slot: Slot, _ wsi: OpaquePointer, _ code: CloseCode, _ sentence: String, _ reason: StaticString
    ) -> Int32 {
        guard !delivery.hasSentClose(slot) else { return -1 }
        // A close frame takes 123 bytes of reason (RFC 6455, section 5.5); lws copies them.
        var text = Array(sentence.utf8.prefix(123))
        let status = lws_close_status(rawValue: UInt32(code.rawValue))
        text.withUnsafeMutableBufferPointer { lws_close_reason(wsi, status, $0.baseAddress, $0.count) }
        delivery.lwsCloses(slot, code.rawValue, reason: reason)
        return -1
    }
}
