import Wire

/// Messages from one to all (wire-protocol A7).
extension Hub {
    func broadcast(_ frame: ClientFrame, from slot: Slot, membership index: Int) {
        guard let membership = connections[Int(slot)]?.memberships[index] else { return }
        let message: Broadcast
        switch frame.body {
        case .userBroadcast(let user):
            guard user.payload.count <= limits.payloadBytes else {
                return refuse(frame, from: slot, joinRef: membership.joinRef, .payloadTooLarge)
            }
            message = .user(user)
        case .json(let payload):
            guard payload.bytes.count <= limits.payloadBytes else {
                return refuse(frame, from: slot, joinRef: membership.joinRef, .payloadTooLarge)
            }
            guard payload.kind == .object else {
                return refuse(frame, from: slot, joinRef: membership.joinRef, .payloadNotAnObject)
            }
            message = .text(Array(payload.bytes))
        }
        deliver(message, in: membership.channel, except: membership.echoesToSelf ? nil : slot)
        actions.append(.relay(.broadcast(membership.channel.key, message)))
        if membership.acknowledges, !frame.ref.isNull {
            reply(to: frame, joinRef: membership.joinRef, from: slot, ok: true)
        }
    }

    /// A message that no socket sent: HTTP, or SQL.
    package func publish(_ message: Broadcast, to key: ChannelKey) {
        if let channel = channels[key] { deliver(message, in: channel, except: nil) }
        actions.append(.relay(.broadcast(key, message)))
    }

    func deliver(_ message: Broadcast, in channel: Channel, except: Slot?) {
        switch message {
        case .text(let payload):
            fanOut("broadcast", [payload[...]], in: channel, to: channel.members, except: except)
        case .user(let user):
            let (v1, v2) = (channel.members.v1, channel.members.v2)
            if !v2.isEmpty, let frame = ServerFrame.userBroadcast(user, topic: channel.key.topic) {
                actions.append(.fanOut(frame, to: v2, except: except))
            }
            // Only a subscriber of version 1 makes the payload worth looking at; raw bytes cannot reach one.
            if !v1.isEmpty, let payload = user.textPayload() {
                actions.append(.fanOut(channel.frames(.v1).push("broadcast", payload: payload), to: v1, except: except))
            }
        }
    }

    /// Takes over what another loop's hub did.
    package func apply(_ relay: Relay) {
        switch relay {
        case .broadcast(let key, let message):
            if let channel = channels[key] { deliver(message, in: channel, except: nil) }
        case .presence(let key, let diff):
            let channel = channel(key)
            channel.presence.apply(diff)
            fanOut("presence_diff", [diff.encoded()[...]], in: channel, to: channel.watchers)
            discardIfIdle(channel)
        }
    }
}
