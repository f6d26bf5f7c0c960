import CWebSockets
import Hub
import Wire

/// The callback for lws. It finds the loop and the slot, and leaves the work to them.
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
        // libuv closes handles after the turn, right before it waits, and lws then calls back. That must not begin a
        // turn, or the wait would count as part of it.
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

    /// Takes one piece of a message, or all of it.
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
            // A message that parses is UTF-8. lws would validate each piece: it would also check a pong that arrives in
            // the middle of a character, and reject the text.
            if !isBinary, String(validating: message, as: UTF8.self) == nil {
                return close(slot, wsi, .invalidData, "The text is not UTF-8", "text that is not UTF-8")
            }
        }
        execute()
        return 0
    }

    /// Stops reading a socket for a moment if it sends faster than allowed.
    private func pace(_ slot: Slot, _ wsi: OpaquePointer, bytes: Int, endsMessage: Bool) {
        // The time at the turn's start: reading a clock for each piece would cost more than handling it.
        let pause = hub.pause(after: bytes, endsMessage: endsMessage, from: slot, at: libuv.turnTime)
        guard pause > 0 else { return }
        pauses.begin(slot, wsi, for: pause)
        // Nothing more is read from this socket in the turn, so the write need not be postponed for it.
        postponement.lastRead = -1
    }

    /// Called once a second: if little room is left, closes sockets whose messages were not completed in time.
    func endSlowMessages() {
        for slot in partial.overdue(at: second, timeout: rules.bodyTimeout) {
            counters.unfinishedRefused += 1
            beginClosing(slot, .tryAgainLater, reason: "too many unfinished messages")
        }
    }

    /// Closes a socket, because all loops together store too many bytes of unfinished messages.
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

    /// Ends a connection while one of its messages is being read. lws sends the close frame.
    ///
    /// - Parameters:
    ///   - sentence: for the peer.
    ///   - reason: for the log.
    private func close(
        _ slot: Slot, _ wsi: OpaquePointer, _ code: CloseCode, _ sentence: String, _ reason: StaticString
    ) -> Int32 {
        guard !delivery.hasSentClose(slot) else { return -1 }
        // A close frame has room for 123 bytes of reason (RFC 6455, section 5.5); lws copies them.
        var text = Array(sentence.utf8.prefix(123))
        let status = lws_close_status(rawValue: UInt32(code.rawValue))
        text.withUnsafeMutableBufferPointer { lws_close_reason(wsi, status, $0.baseAddress, $0.count) }
        delivery.lwsCloses(slot, code.rawValue, reason: reason)
        return -1
    }
}
