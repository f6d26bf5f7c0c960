import Hub

/// Applies the messages of the log, and what they decide.
extension ClusterState {
    /// - Parameters:
    ///   - hub: the process that sent it; this hub's own messages arrive too.
    mutating func receiveMessage(_ message: PeerMessage, from hub: UInt64, at now: Int64, _ out: inout [Output]) {
        let isOwn = hub == boot
        switch message {
        // Belongs to no channel: the worker handles it.
        case .users: break
        case .broadcast(let key, let body): if !isOwn { out.append(.hear(.broadcast(key, body.message))) }
        case .ordered(let key, let body, let sender, let databaseID):
            guard isOwn else {
                let sender = sender.map { MessageSender(elsewhere: names.memberID($0)) }
                let broadcast = OrderedBroadcast(body.message, sender: sender, databaseID: databaseID)
                return out.append(.number(key, broadcast, isOwn: false))
            }
            ownOrderedCame(in: key, &out)
        case .presence(let key, let joins, let leaves): receivePresence(joins, leaves, in: key, from: hub, &out)
        case .typing(let key, let word):
            if !isOwn, let relay = typingRelay(word) { out.append(.hear(.typing(key, relay))) }
        case .lost(_, let name, let time):
            guard let copy = members.markLost(name, of: hub, until: now + Int64(time)), !isOwn else { return }
            offerLease(copy, until: now + Int64(time), &out)
        case .expected(_, let name, let time):
            guard let copy = members.extendWindow(name, until: now + Int64(time)), !isOwn else { return }
            out.append(.extend(names.memberID(name), Self.leasePlace(copy), until: now + Int64(time)))
        case .claimed(_, let name, let owner): receiveClaim(name, owner, by: hub, &out)
        case .over(_, let name, let owner): receiveEnd(name, owner, by: hub, &out)
        case .appState(_, let name, let state): members.setAppState(state, of: name)
        case .keep(let key, let wish):
            guard !isOwn else { return }
            wishes[hub, default: [:]][key] = wish
            out.append(.keep(key, wish, hub: hub))
        }
    }

    private mutating func receivePresence(
        _ joins: [PeerMessage.PresentMember], _ leaves: [PeerMessage.GonePresence], in key: ChannelKey,
        from hub: UInt64, _ out: inout [Output]
    ) {
        var diff = PresenceDiff()
        for member in joins {
            let before = members[member.member]
            guard members.addMember(member, in: key, of: hub) else {
                if hub == boot { correctLoops(member.member, &out) }
                continue
            }
            guard hub != boot else { continue }
            // Anything this hub has said about the member since is void.
            voidOwnClaim(of: member.member, &out)
            if let before { withdrawLease(before, &out) }
            // A repeated join is already shown, and the leave would undo it.
            guard before?.record.ref != member.ref else { continue }
            diff.joins.append(presenceMeta(member))
            if let before { diff.leaves.append(presenceMeta(before.record)) }
        }
        for gone in leaves {
            guard let copy = members.removeMember(gone.member, ref: gone.ref, by: hub) else {
                if hub == boot { correctLoops(gone.member, &out) }
                continue
            }
            withdrawLease(copy, &out)
            if hub != boot { diff.leaves.append(presenceMeta(copy.record)) }
        }
        guard !diff.joins.isEmpty || !diff.leaves.isEmpty else { return }
        out.append(.hear(.presence(key, diff)))
    }

    /// The loops announced a change of a member that another hub owns by now: shows them that hub's version.
    private mutating func correctLoops(_ name: PeerMessage.MemberName, _ out: inout [Output]) {
        guard let copy = members[name], copy.hub != boot, own[name] == nil else { return }
        showMember(copy, &out)
    }

    mutating func showMember(_ copy: PresentMembers.Copy, _ out: inout [Output]) {
        var diff = PresenceDiff()
        diff.joins = [presenceMeta(copy.record)]
        out.append(.hear(.presence(copy.channel, diff)))
    }

    private mutating func receiveClaim(
        _ name: PeerMessage.MemberName, _ owner: PeerMessage.MemberOwner, by hub: UInt64, _ out: inout [Output]
    ) {
        let wasVoid = hub == boot ? claims[name]?.removeFirst() : nil
        if claims[name]?.isEmpty == true { claims[name] = nil }
        guard let before = members.claimMember(name, of: owner, by: hub) else {
            // Void: another claim came first, or the member had ended. Later claims that build on this one are void too.
            if wasVoid == false {
                voidOwnClaims(of: name)
                renewMember(name, &out)
            }
            return
        }
        guard hub != boot else { return }
        voidOwnClaim(of: name, &out)
        // Whatever this hub holds of the member is no longer its own.
        renewMember(name, &out)
        withdrawLease(before, &out)
    }

    private mutating func receiveEnd(
        _ name: PeerMessage.MemberName, _ owner: PeerMessage.MemberOwner, by hub: UInt64, _ out: inout [Output]
    ) {
        guard let copy = members.endMember(name, of: owner, by: hub) else { return }
        let member = names.memberID(name)
        guard hub != boot else {
            return out.append(.conclude(.isOver, member, copy.channel, loop: owningLoop(of: member)))
        }
        voidOwnClaim(of: name, &out)
        // This hub seemed dead. If the member is here, it goes on as a new member.
        if copy.hub == boot { renewMember(name, &out) }
        withdrawLease(copy, &out)
    }

    /// An earlier log message voids this hub's claim: its loop is told before it hears the messages that follow.
    mutating func voidOwnClaim(of name: PeerMessage.MemberName, _ out: inout [Output]) {
        guard claims[name]?.contains(false) == true else { return }
        voidOwnClaims(of: name)
        renewMember(name, &out)
    }

    private mutating func voidOwnClaims(of name: PeerMessage.MemberName) {
        if let pending = claims[name] { claims[name] = pending.map { _ in true } }
    }

    /// A member that is here has ended or belongs to another hub: here it goes on as a new member.
    mutating func renewMember(_ name: PeerMessage.MemberName, _ out: inout [Output]) {
        guard let mine = own.removeValue(forKey: name) else { return }
        out.append(.forget(ref: mine.record.ref))
        let copy = PresentMembers.Copy(record: mine.record, channel: mine.channel, hub: boot)
        out.append(.withdraw(names.memberID(name), Self.leasePlace(copy)))
        let conclusion = LeaseConclusion.goesOnAnew(payload: mine.record.payload)
        out.append(.conclude(conclusion, names.memberID(name), mine.channel, loop: Self.allLoops))
        if let copy = members[name], copy.hub != boot, copy.endedBy == nil { return showMember(copy, &out) }
        // If it was lost here, no other hub removes it from what the loops show.
        guard members[name]?.record.ref != mine.record.ref else { return }
        var diff = PresenceDiff()
        diff.leaves = [presenceMeta(mine.record)]
        out.append(.hear(.presence(mine.channel, diff)))
    }

    /// In place of a loop: the one that has the member.
    static let allLoops = -1

    /// The loop that removes a member: its own, or the first for members of other hubs.
    private func owningLoop(of member: MemberID) -> Int {
        0..<MemberID.firstForeignLoop ~= member.loop ? member.loop : 0
    }
}
