import Hub

/// Translates members' names between this process and other hubs. Within a process a member is a loop and a number
/// (`MemberID`); between hubs, the process is added. Members of other hubs get loop numbers that no loop has.
///
/// Confined to the thread of the cluster's worker.
struct MemberNames {
    /// This hub's own process.
    let boot: UInt64
    private var loops: [ForeignLoop: Int] = [:]
    private var foreign: [ForeignLoop] = []

    private struct ForeignLoop: Hashable {
        let boot: UInt64
        let loop: Int
    }

    init(boot: UInt64) { self.boot = boot }

    func name(of member: MemberID) -> PeerMessage.MemberName {
        guard member.loop >= MemberID.firstForeignLoop else {
            // Members from before the start have the loop −1.
            return PeerMessage.MemberName(boot: boot, loop: member.loop + 1, serial: member.serial)
        }
        let loop = foreign[member.loop - MemberID.firstForeignLoop]
        return PeerMessage.MemberName(boot: loop.boot, loop: loop.loop, serial: member.serial)
    }

    mutating func memberID(_ name: PeerMessage.MemberName) -> MemberID {
        guard name.boot != boot else { return MemberID(loop: name.loop - 1, serial: name.serial) }
        let loop = ForeignLoop(boot: name.boot, loop: name.loop)
        let number = loops[loop] ?? MemberID.firstForeignLoop + foreign.count
        if loops[loop] == nil {
            loops[loop] = number
            foreign.append(loop)
        }
        return MemberID(loop: number, serial: name.serial)
    }
}
