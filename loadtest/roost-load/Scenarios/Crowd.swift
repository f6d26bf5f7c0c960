/// The channels that the sockets of a crowd join, and how that is said.
struct Crowd {
    let plan: LoadPlan
    let map: ChannelMap
    let share: Share

    init(_ plan: LoadPlan, worker: Int) {
        self.plan = plan
        map = ChannelMap(plan)
        share = Share(of: worker, plan)
    }

    func topic(_ channel: Int) -> String {
        plan.dialect.topic("load:\(Hexadecimal.text(UInt64(plan.run), width: 8)):\(channel)")
    }

    /// Of a subscriber.
    func opening(of slot: Int) throws -> Opening {
        let channels = (0..<map.perSocket).map { map.channel($0, ofSocket: share.first + slot) }
        guard let raw = plan.raw else { return joins(channels) }
        var opening = Opening(answers: raw.acknowledgements)
        for channel in channels { opening.frames += try frames(raw.subscribeFrames, channel) }
        return opening
    }

    /// Of somebody who publishes in some channels.
    func opening(publisherOf channels: Range<Int>) throws -> Opening {
        guard let raw = plan.raw else { return joins(Array(channels)) }
        return Opening(
            frames: try frames(raw.greetingFrames, channels.lowerBound), answers: raw.publisherAcknowledgements)
    }

    func template(_ channel: Int) throws -> MessageTemplate {
        guard let raw = plan.raw else {
            // A publisher's channels are joined in order.
            let ref = String(channel % LoadPlan.channelsPerPublisher + 1)
            return plan.dialect.broadcast(topic(channel), joinRef: ref, event: plan.dialect.event)
        }
        return MessageTemplate(
            raw.isBinary ? .binary : .text, try RawProtocol.bytes(raw.prefix, channel: channel),
            try RawProtocol.bytes(raw.suffix, channel: channel))
    }

    private func joins(_ channels: [Int]) -> Opening {
        var opening = Opening(answers: channels.count)
        for (index, channel) in channels.enumerated() {
            opening.frames.append(plan.dialect.join(topic(channel), ref: String(index + 1)))
        }
        return opening
    }

    private func frames(_ texts: [String], _ channel: Int) throws -> [[UInt8]] {
        try texts.map {
            OutgoingFrame.make(
                plan.raw?.isBinary == true ? .binary : .text, try RawProtocol.bytes($0, channel: channel))
        }
    }
}
