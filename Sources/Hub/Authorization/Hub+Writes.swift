import Wire

/// What members want the others to hear: at once in a public channel, by the right to do so in a private one.
extension Hub {
    func write(_ write: MemberWrite, ref: JSON, of membership: Membership) {
        guard let pass = membership.pass else { return perform(write, ref, of: membership) }
        if pass.held.isEmpty, pass.readQuestion == nil, membership.pending == nil {
            switch write.need.map({ pass.write[$0] }) ?? .allowed {
            case .allowed: return perform(write, ref, of: membership)
            case .denied: return refuse(ref, of: membership, denial(of: write, in: membership))
            case .unknown, .asked: break
            }
        }
        let entry = HeldWrites.Entry(write: write.copied, ref: JSON(trusted: Array(ref.bytes)[...]))
        // The first is always kept, as it is no larger than a payload may be.
        guard pass.held.entries.count < limits.heldPerMember, heldBytes + entry.bytes <= limits.heldBytes,
            pass.held.isEmpty || pass.held.bytes + entry.bytes <= limits.payloadBytes
        else { return refuse(ref, of: membership, .writesPending) }
        pass.held.append(entry)
        heldBytes += entry.bytes
        releaseWrites(of: membership)
    }

    /// Performs or refuses what waits, in order, as far as it is decided; asks for what the next one needs.
    func releaseWrites(of membership: Membership) {
        guard let pass = membership.pass, membership.pending == nil, pass.readQuestion == nil else { return }
        while let next = pass.held.first {
            switch next.write.need.map({ pass.write[$0] }) ?? .allowed {
            case .asked: return
            case .unknown:
                if let need = next.write.need {
                    pass.write[need] = .asked(ask(.write(need), as: membership.claims, for: membership))
                }
                return
            case .allowed:
                drop(next, of: pass)
                perform(next.write, next.ref, of: membership)
            case .denied:
                drop(next, of: pass)
                refuse(next.ref, of: membership, denial(of: next.write, in: membership))
            }
        }
    }

    private func drop(_ entry: HeldWrites.Entry, of pass: ChannelPass) {
        pass.held.removeFirst()
        heldBytes -= entry.bytes
    }

    func writeDecided(
        _ id: AuthorizationID, _ outcome: AuthorizationOutcome, _ pass: ChannelPass, of membership: Membership
    ) {
        guard let need = [ChannelExtensions.broadcast, .presence].first(where: { pass.write[$0] == .asked(id) }) else {
            return
        }
        if case .decided(let allowed, _) = outcome {
            pass.write[need] = allowed.contains(need) ? .allowed : .denied
        } else {
            // Nothing is known, so the next write asks again.
            pass.write[need] = .unknown
            refuseHeld(of: membership, .databaseUnavailable, needing: need)
        }
        releaseWrites(of: membership)
    }

    /// Answers writes that wait and will never be performed: nothing is dropped in silence.
    func refuseHeld(of membership: Membership, _ refusal: Refusal, needing need: ChannelExtensions? = nil) {
        guard let pass = membership.pass else { return }
        for entry in pass.held.removeAll(needing: need) {
            heldBytes -= entry.bytes
            refuse(entry.ref, of: membership, refusal)
        }
    }

    private func denial(of write: MemberWrite, in membership: Membership) -> Refusal {
        let topic = String(membership.channel.key.name)
        return write.need == .presence ? .trackUnauthorized(topic: topic) : .writeUnauthorized(topic: topic)
    }

    // MARK: Performing

    private func perform(_ write: MemberWrite, _ ref: JSON, of membership: Membership) {
        switch write {
        case .broadcast(let message) where typing.consumes(message, of: membership, &context):
            guard membership.acknowledges, !ref.isNull else { return }
        case .broadcast(let message):
            deliver(message, in: membership.channel, except: membership.echoesToSelf ? nil : membership.slot)
            actions.append(.relay(.broadcast(membership.channel.key, message)))
            guard membership.acknowledges, !ref.isNull else { return }
        case .track(let payload):
            if presence.prepareToTrack(payload, of: membership, &context) { hearOthers() }
            do { try presence.track(payload, of: membership, &context) } catch {
                return refuse(ref, of: membership, error)
            }
        case .untrack:
            presence.withdraw(membership.presence.id, in: membership.channel, &context)
        }
        reply(to: ref, of: membership, ok: true)
    }
}
