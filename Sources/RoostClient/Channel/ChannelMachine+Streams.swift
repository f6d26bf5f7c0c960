import Wire

/// The channel of a stream: the hub's frames, and the app's appends.
extension ChannelMachine {
    // MARK: Watching

    /// Handles the payload of a broadcast `stream`. Frames before the reply to a join are repeated after it.
    mutating func takeStream(_ frame: JSON, _ context: Context, _ refs: inout Refs, _ at: Instant) {
        guard isJoined, let outcome = stream?.receiveFrame(frame) else { return }
        switch outcome {
        case .nothing: break
        case .misfit(let reason):
            channelLost(reason, context.appState, at)
            joinLater(reason, at)
        case .news(let news):
            actions.append(.stream(news))
            // Their appends would be refused, so writers are told at once. A writer's own close is reported by its
            // reply.
            switch news.end?.reason {
            case .cancelled: failWriters(.streamCancelled(at: news.end?.offset ?? 0))
            case .aborted: failWriters(.streamEnded(at: news.end?.offset ?? 0))
            case .complete, .deleted, nil: break
            }
            guard let place = stream?.next, place > configuration.maximumStreamBytes else { return }
            let limit = configuration.maximumStreamBytes
            actions.append(.send(channelMessage("phx_leave", ref: refs.next(), Array("{}".utf8))))
            failChannel(.ended(reason: "The stream has more than \(limit) bytes (maximumStreamBytes)."))
        }
    }

    // MARK: Writing

    /// Adds a writer, whose appends the hub recognizes by its name.
    package mutating func openWriter(_ id: WriterID, name: String, epoch: Int) {
        producers[id] = StreamProducer(name: name, epoch: epoch, timing.backoff)
        guard !configuration.isPrivate || !configuration.acknowledgesBroadcasts || stream == nil else { return }
        failWriters(.refused(reason: "The channel was opened so that no stream can be written by it."))
    }

    /// Removes a writer, with its unsent appends.
    package mutating func closeWriter(_ id: WriterID) { producers[id] = nil }

    /// Carries out an order of the app for a writer, now or once the channel is back.
    package mutating func carryOut(
        _ order: WriterOrder, of id: WriterID, _ call: CallID, _ refs: inout Refs, _ at: Instant
    ) {
        actions += producers[id]?.takeOrder(order, call) ?? [.answer(call, .left)]
        sendWrites(&refs, at)
    }

    /// Sends all pending writes if the channel is joined.
    mutating func sendWrites(_ refs: inout Refs, _ at: Instant) {
        guard isJoined else { return }
        for id in producers.keys.sorted() {
            while let write = producers[id]?.nextWrite(&refs, deadline: at.now + timing.send) {
                actions.append(
                    .send(
                        ClientMessage(
                            joinRef: joinRef, ref: write.ref, topic: topic, event: "broadcast",
                            body: .broadcast(event: write.event, payload: write.payload, isJSON: true))))
            }
        }
    }

    /// Marks unanswered writes for sending after the next join.
    mutating func loseWrites() {
        for id in producers.keys { producers[id]?.connectionLost() }
    }

    /// Handles the reply to a write.
    ///
    /// - Parameter reason: the reason of a refusal; nil if the hub accepted it.
    /// - Returns: false if no writer waits for this reply.
    mutating func answersWrite(
        _ ref: String, _ reason: String?, _ response: JSON, _ context: Context, _ refs: inout Refs, _ at: Instant
    ) -> Bool {
        guard let id = producers.first(where: { $0.value.awaitsReply(ref) })?.key else { return false }
        if let reason {
            if reason == "unmatched topic" {
                // The hub no longer knows this channel.
                channelLost(reason, context.appState, at)
                joinLater(reason, at)
                return true
            }
            actions += producers[id]?.writeRefused(ref, reason, at) ?? []
            if let failure = producers[id]?.failure { actions.append(.writerFailed(id, failure)) }
            if NextAction(reason: reason) == .refreshToken { actions.append(.tokenRefused) }
        } else {
            // Reported before the calls are answered, as they read it.
            if let end = response["next"]?.int { actions.append(.kept(id, end)) }
            actions += producers[id]?.writeStored(ref) ?? []
        }
        sendWrites(&refs, at)
        return true
    }

    /// Ends all writers of the channel with this error.
    mutating func failWriters(_ error: RoostError) {
        for id in producers.keys.sorted() {
            let answers = producers[id]?.failCalls(error) ?? []
            if let failure = producers[id]?.failure { actions.append(.writerFailed(id, failure)) }
            actions += answers
        }
    }
}
