extension PresenceBook {
    /// One who was present when the hub's last process ended.
    package struct Restored: Sendable {
        package let channel: ChannelKey
        package let meta: PresenceMeta
    }

    /// Takes in what was written down, as leases: whoever comes back in time was never gone, also to those who come back
    /// themselves and are told who is there.
    ///
    /// - Parameter until: when those who did not come back are gone, in monotonic milliseconds.
    package func restore(_ records: [PresenceRecord], until: Int64) -> [Restored] {
        var leases: [PresenceLease] = []
        var restored: [Restored] = []
        for (number, record) in records.enumerated() {
            // No loop has this number, so that no member of this process can be the same.
            let member = MemberID(loop: -1, serial: number)
            let key = record.hasMadeKey ? nil : Array(record.key.utf8)
            leases.append(
                PresenceLease(
                    member: member,
                    place: PresenceLease.Place(channel: record.channel, user: record.user, key: key), key: record.key,
                    appState: record.appState, loop: 0, until: until))
            let meta = PresenceMeta(member: member, key: record.key, ref: record.ref, payload: record.payload)
            restored.append(Restored(channel: record.channel, meta: meta))
        }
        offer(leases)
        return restored
    }
}
