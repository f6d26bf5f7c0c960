import Hub

/// Converts members and typists between this hub's form and the form used between hubs.
extension ClusterState {
    mutating func presenceMeta(_ member: PeerMessage.PresentMember) -> PresenceMeta {
        PresenceMeta(
            member: names.memberID(member.member), key: member.key, ref: member.ref, payload: member.payload,
            previousRef: member.previousRef)
    }

    static func leasePlace(_ copy: PresentMembers.Copy) -> PresenceLease.Place {
        let record = copy.record
        return PresenceLease.Place(
            channel: copy.channel, user: record.user, key: record.hasMadeKey ? nil : Array(record.key.utf8))
    }

    func presenceRecord(_ copy: PresentMembers.Copy) -> PresenceRecord {
        let record = copy.record
        return PresenceRecord(
            channel: copy.channel, ref: record.ref, key: record.key, hasMadeKey: record.hasMadeKey, user: record.user,
            payload: record.payload, appState: record.appState)
    }

    mutating func offerLease(_ copy: PresentMembers.Copy, until: Int64, _ out: inout [Output]) {
        guard own[copy.record.member] == nil else { return }
        withdrawLease(copy, &out)
        out.append(
            .offer(
                PresenceLease(
                    member: names.memberID(copy.record.member), place: Self.leasePlace(copy), key: copy.record.key,
                    appState: copy.record.appState, loop: PresenceLease.elsewhere, until: until)))
    }

    mutating func withdrawLease(_ copy: PresentMembers.Copy, _ out: inout [Output]) {
        // A member that is this hub's own, or is about to be, ends another way (`LeaseConclusion.goesOnAnew`).
        guard copy.lostUntil != nil, own[copy.record.member] == nil else { return }
        out.append(.withdraw(names.memberID(copy.record.member), Self.leasePlace(copy)))
    }

    func typingWord(_ relay: TypingRelay) -> PeerMessage.TypingWord {
        switch relay {
        case .started(let id, let signal): .started(peerTypist(id), .init(signal.message))
        case .stopped(let id, let signal): .stopped(peerTypist(id), .init(signal.message))
        case .ended(let id): .ended(peerTypist(id))
        case .forgotten(let id): .forgotten(peerTypist(id))
        }
    }

    func peerTypist(_ id: ChannelTypist.ID) -> PeerMessage.Typist {
        switch id {
        case .user(let user): .user(user)
        case .member(let member): .member(names.name(of: member))
        case .payload(let payload): .payload(payload)
        }
    }

    mutating func typingRelay(_ word: PeerMessage.TypingWord) -> TypingRelay? {
        switch word {
        case .started(let typist, let body): TypingSignal(body.message).map { .started(channelTypist(typist), $0) }
        case .stopped(let typist, let body): TypingSignal(body.message).map { .stopped(channelTypist(typist), $0) }
        case .ended(let typist): .ended(channelTypist(typist))
        case .forgotten(let typist): .forgotten(channelTypist(typist))
        }
    }

    mutating func channelTypist(_ typist: PeerMessage.Typist) -> ChannelTypist.ID {
        switch typist {
        case .user(let user): .user(user)
        case .member(let name): .member(names.memberID(name))
        case .payload(let payload): .payload(payload)
        }
    }

    static func hash(_ key: ChannelKey, _ wish: HistoryWish) -> UInt64 {
        var hash: UInt64 = key.isPrivate ? 0x8422_2325_cbf2_9ce4 : 0xcbf2_9ce4_8422_2325
        func mixByte(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        for byte in key.topic.utf8 { mixByte(byte) }
        for number in [UInt64(wish.limit), UInt64(bitPattern: wish.lifetime)] {
            for shift in stride(from: UInt64(0), to: 64, by: 8) { mixByte(UInt8(truncatingIfNeeded: number >> shift)) }
        }
        hash = (hash ^ hash >> 30) &* 0xbf58_476d_1ce4_e5b9
        return hash ^ hash >> 31
    }
}
