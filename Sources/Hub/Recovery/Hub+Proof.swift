package import Wire

/// Proofs of what sockets have received; see `Lifeline`.
extension Hub {
    /// The socket's lifeline, made for the first membership that hears row changes.
    func lifeline(of slot: Slot) -> Lifeline {
        if let lifeline = connections[Int(slot)]?.lifeline { return lifeline }
        let lifeline = Lifeline(mark: mark, of: SocketPlace(loop: loop, slot: slot))
        connections[Int(slot)]?.lifeline = lifeline
        return lifeline
    }

    /// A ping that proves, when it is answered, all that was sent to the socket before it. Nil where nobody needs to know.
    package func proofPing(for slot: Slot) -> Frame? {
        guard connections[Int(slot)]?.lifeline != nil else { return nil }
        let serial = nextProof(of: slot)
        connections[Int(slot)]?.asked = Lifeline.Proof(
            serial: serial, mark: mark, at: latest.monotonic, moment: book.moment())
        for membership in connections[Int(slot)]?.memberships ?? Memberships() {
            membership.recovery?.reaches(provenBy: serial)
        }
        return .ping(String(serial))
    }

    /// The number of the first proof that is about what is sent from here on.
    func nextProof(of slot: Slot) -> Int {
        guard let connection = connections[Int(slot)] else { return 1 }
        return max(connection.lifeline?.proof.serial ?? 0, connection.asked?.serial ?? 0) + 1
    }

    /// The socket answered a ping.
    ///
    /// - Returns: whether it was the last proof that it was asked for.
    @discardableResult package func pong(_ payload: some Sequence<UInt8>, from slot: Slot) -> Bool {
        guard let asked = connections[Int(slot)]?.asked, payload.elementsEqual(String(asked.serial).utf8) else {
            return false
        }
        connections[Int(slot)]?.asked = nil
        connections[Int(slot)]?.lifeline?.advance(to: asked)
        for membership in connections[Int(slot)]?.memberships ?? Memberships() {
            membership.recovery?.isProven(by: asked.serial)
        }
        // Once for all that answer in this turn.
        if !arrivals.isEmpty { timetable.note(.arrivals, at: latest.monotonic) }
        return true
    }

    /// Whether the socket was asked for a proof and has not answered.
    package func isAskedForProof(_ slot: Slot) -> Bool { connections[Int(slot)]?.asked != nil }

    /// The socket has nothing that is not proven: whatever the feed brought since did not concern it.
    package func nothingUnproven(of slot: Slot) {
        guard let connection = connections[Int(slot)], let lifeline = connection.lifeline, connection.asked == nil
        else { return }
        let proof = lifeline.proof
        // It says nothing of whether the socket lives.
        if proof.mark < mark {
            lifeline.advance(to: .init(serial: proof.serial + 1, mark: mark, at: proof.at, moment: proof.moment))
        }
    }

    /// A close frame follows all that was sent so far: its answer proves it.
    package func isClosing(_ slot: Slot) {
        _ = proofPing(for: slot)
    }

    /// The peer answered the close frame.
    package func closeAnswered(_ slot: Slot) {
        guard let asked = connections[Int(slot)]?.asked else { return }
        connections[Int(slot)]?.lifeline?.advance(to: asked)
    }
}
