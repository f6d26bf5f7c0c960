package import Wire

/// Messages that members, or clients over HTTP, send to others (wire-protocol A6, A7).
extension Hub {
    /// Bytes held until the policies answer.
    package var heldBytes: Int { authorization.heldBytes }

    func handleBroadcast(_ frame: ClientFrame, of membership: Membership) {
        let most = context.limits.payloadBytes
        let message: BroadcastMessage
        switch frame.body {
        case .userBroadcast(let user):
            guard user.payload.count <= most else {
                return context.refuseMessage(.broadcast, frame.ref, of: membership, .over(.payloadBytes, most))
            }
            message = .user(user)
        case .json(let payload):
            guard payload.bytes.count <= most else {
                return context.refuseMessage(.broadcast, frame.ref, of: membership, .over(.payloadBytes, most))
            }
            // Even if it is not an object, as in the original (supabase/realtime 2.174).
            message = .text(Array(payload.bytes))
        }
        guard !ActivitySummary.isReserved(message, topic: membership.channel.key.topic) else {
            return context.refuseMessage(.broadcast, frame.ref, of: membership, .summaryReserved)
        }
        guard !presence.consumesAppState(message, ref: frame.ref, of: membership, &context) else {
            return noteAppState(of: membership.connection)
        }
        if membership.channel.stream != nil {
            do throws(Refusal) {
                if let wanted = try StreamWrite(message) {
                    return submitWrite(.stream(wanted), ref: frame.ref, of: membership)
                }
            } catch {
                return context.refuseMessage(.broadcast, frame.ref, of: membership, error)
            }
        }
        do throws(Refusal) {
            let wish = membership.grants == nil ? nil : try PersistRequest(frame.metadata?["persist"])
            submitWrite(persistedWrite(message, wish) ?? .broadcast(message), ref: frame.ref, of: membership)
        } catch {
            context.refuseMessage(.broadcast, frame.ref, of: membership, error)
        }
    }

    /// Returns the write for a message that its sender wants stored; nil if it does not, or if the channel is public,
    /// as in the original.
    private func persistedWrite(_ message: BroadcastMessage, _ wish: PersistRequest?) -> MemberWrite? {
        guard case .user(let user) = message, let wish else { return nil }
        return .persisted(user, wish)
    }

    /// Performs a member's write: at once in a public channel, subject to its rights in a private one.
    func submitWrite(_ write: MemberWrite, ref: JSON, of membership: Membership) {
        guard let grants = membership.grants else { return performWrite(write, ref, of: membership) }
        switch authorization.admitWrite(write, ref: ref, grants, of: membership, context.limits) {
        case .performed: performWrite(write, ref, of: membership)
        case .refused(let refusal): context.refuseMessage(write.kind, ref, of: membership, refusal)
        case .held: releaseWrites(of: membership)
        }
    }

    /// Holds a member's presence message while its join is in progress, as the original does, which reads on when it
    /// has answered (supabase-realtime-rs 3de2771 tracks right after its join, and waits for neither answer). The last
    /// one counts; an earlier one is answered as if it had been shown and then replaced.
    func holdPresence(_ write: MemberWrite, ref: JSON, in pending: PendingJoin, of membership: Membership) {
        if let earlier = pending.presence { context.reply(to: earlier.ref, of: membership, ok: true) }
        pending.presence = HeldWrites.Entry(write: write.copied, ref: JSON(trusted: Array(ref.bytes)[...]))
    }

    /// Performs the held presence message.
    func releasePresence(in pending: PendingJoin, of membership: Membership) {
        guard let held = pending.presence else { return }
        submitWrite(held.write, ref: held.ref, of: membership)
    }

    /// Refuses all held messages, which will never be performed.
    func refuseHeld(of membership: Membership, _ refusal: Refusal) {
        if let held = membership.pending?.presence {
            membership.pending?.presence = nil
            context.refuseMessage(held.write.kind, held.ref, of: membership, refusal)
        }
        authorization.refuseHeld(of: membership, refusal, &context)
    }

    /// Performs or refuses held messages, in order, as far as they are decided.
    func releaseWrites(of membership: Membership) {
        while let (next, refusal) = authorization.nextWrite(of: membership, &context) {
            if let refusal {
                context.refuseMessage(next.write.kind, next.ref, of: membership, refusal)
            } else {
                performWrite(next.write, next.ref, of: membership)
            }
        }
    }

    private func performWrite(_ write: MemberWrite, _ ref: JSON, of membership: Membership) {
        switch write {
        case .broadcast(let message) where typing.consumesTyping(message, of: membership, &context):
            guard membership.acknowledges, !ref.isNull else { return }
        case .persisted(let user, let wish):
            sendBroadcast(.user(user), of: membership)
            if membership.grants?.mayPersist == true,
                let row = PersistedMessage(user, in: membership.channel.key, wish, by: membership.claims.subject)
            {
                let isAnswered = MessageKind.broadcast.isAnswered(membership, ref)
                return persistence.storeMessage(row, ref: isAnswered ? ref : nil, of: membership, &context)
            }
            guard membership.acknowledges, !ref.isNull else { return }
        case .broadcast(let message):
            sendBroadcast(message, of: membership)
            guard membership.acknowledges, !ref.isNull else { return }
        case .track(let payload):
            if presence.prepareToTrack(payload, of: membership, &context) { hearOthers() }
            do { try presence.track(payload, of: membership, &context) } catch {
                return context.refuseMessage(.presence, ref, of: membership, error)
            }
        case .stream(let wanted): return streams.performWrite(wanted, ref, of: membership, &context)
        case .untrack:
            presence.withdrawMember(membership.presence.id, in: membership.channel, &context)
        }
        context.reply(to: ref, of: membership, ok: true)
    }

    /// Sends a member's message to the others in its channel.
    private func sendBroadcast(_ message: BroadcastMessage, of membership: Membership) {
        let (key, except) = (membership.channel.key, membership.echoesToSelf ? nil : membership)
        if isOrdered(key) {
            let sender = except.map { MessageSender(member: $0.member, slot: $0.slot) }
            history.store.countSent(key)
            actions.append(.relay(.ordered(key, OrderedBroadcast(message, sender: sender), isNumbered: false)))
        } else {
            deliverBroadcast(message, in: membership.channel, except: except?.slot)
            actions.append(.relay(.broadcast(key, message)))
        }
    }

    /// Publishes a message that came by HTTP. Clients use HTTP while they are not joined, so it may be a typing signal.
    ///
    /// - Parameters:
    ///   - event: the message's event; nil if it has to be parsed.
    ///   - user: the claim `sub` of the sender's token.
    package func publishMessage(
        _ message: BroadcastMessage, of event: String? = nil, to key: ChannelKey, by user: Name? = nil
    ) {
        if event.map({ $0.hasSameBytes(as: TypingSignal.event) }) ?? true, let signal = typing.signal(in: message) {
            let channel = ensureChannel(key)
            typing.handleSignal(signal, of: user, in: channel, &context)
            return discardIfIdle(channel)
        }
        if isOrdered(key) {
            history.store.countSent(key)
            return actions.append(.relay(.ordered(key, OrderedBroadcast(message), isNumbered: false)))
        }
        if let channel = channels[key] {
            deliverBroadcast(message, in: channel, except: nil)
        } else {
            history.keepBroadcast(message, to: key, in: nil, except: nil, &context)
        }
        actions.append(.relay(.broadcast(key, message)))
    }

    /// Whether a message to the channel must be numbered for all hubs before any member receives it.
    func isOrdered(_ key: ChannelKey) -> Bool { context.hasPeers && history.store.isOrdered(key) }

    /// Delivers a message that originates on this loop; the other loops get it by a relay.
    func deliverBroadcast(_ message: BroadcastMessage, in channel: LocalChannel, except: Slot?) {
        history.keepBroadcast(message, to: channel.key, in: channel, except: except, &context)
        context.deliverBroadcast(message, in: channel, to: channel.members, except: except)
        passOnNews(in: channel)
    }

    /// Passes all new messages on to the channel's members with history.
    func passOnNews(in channel: LocalChannel) {
        for message in history.news(in: channel, &context) {
            var spared: Set<Slot>?
            if let id = message.databaseID {
                let row = DatabaseBroadcast(key: channel.key, id: id, broadcast: message.broadcast)
                authorization.keepForReplays(row, in: channel, withHistory: true, context.limits)
                spared = channel.replays.receivers(of: id)
            }
            history.passOn(message, in: channel, sparing: spared, &context)
        }
    }
}
