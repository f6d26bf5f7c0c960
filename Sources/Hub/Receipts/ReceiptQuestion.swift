package import Wire

/// Whether one user, or one of the user's devices, certainly has one message row, asked of the sockets on one loop.
///
/// It goes to the loop as a `FeedEvent`, behind the row: a loop that is asked has handed the row to everybody who hears it.
package struct ReceiptQuestion: Sendable {
    /// `RowChange.id`.
    package let change: Int64
    package let user: Name
    /// The claim `session_id` of the device's tokens; nil if any device of the user's may answer.
    package let device: Name?
    /// Their sockets on the loop.
    package let slots: [Slot]
    /// How a broadcast of the same row is told.
    package let row: MessageIdentity
    /// Whether it is enough that somebody is there: what is asked about goes by no socket.
    package let asksForLife: Bool
    /// Whether the app that proves it has to be on the screen.
    package let demandsShown: Bool
    /// When nobody waits for the answer any more, in monotonic milliseconds.
    package let until: Int64

    package init(
        change: Int64, user: Name, device: Name? = nil, slots: [Slot], row: MessageIdentity, asksForLife: Bool = false,
        demandsShown: Bool, until: Int64
    ) {
        self.change = change
        self.user = user
        self.device = device
        self.slots = slots
        self.row = row
        self.asksForLife = asksForLife
        self.demandsShown = demandsShown
        self.until = until
    }

    /// Whether a socket may answer it: its place may be somebody else's by now.
    func isFor(_ connection: Connection) -> Bool {
        guard connection.user == user else { return false }
        return device.map { connection.device == DeviceKey.of(user: user, session: $0) } ?? true
    }

    /// Whether one answer is for both.
    func isSame(as other: ReceiptQuestion) -> Bool {
        change == other.change && user == other.user && device == other.device
    }

    func without(_ slot: Slot) -> ReceiptQuestion {
        ReceiptQuestion(
            change: change, user: user, device: device, slots: slots.filter { $0 != slot }, row: row,
            asksForLife: asksForLife, demandsShown: demandsShown, until: until)
    }
}

/// A row's table and primary key, as a message of `realtime.broadcast_changes` can be compared with it.
package struct MessageIdentity: Sendable, Equatable {
    package let schema: Name
    package let table: Name
    /// The columns of the primary key with their values as JSON text.
    package let key: [(column: Name, value: Name)]

    package init(schema: Name, table: Name, key: [(column: Name, value: Name)]) {
        self.schema = schema
        self.table = table
        self.key = key
    }

    package static func == (one: MessageIdentity, other: MessageIdentity) -> Bool {
        one.schema == other.schema && one.table == other.table && one.key.elementsEqual(other.key, by: ==)
    }

    /// Whether a change as `realtime.broadcast_changes` sends it is the row's insert.
    func isMeant(by insert: JSON) -> Bool {
        guard !key.isEmpty, let record = insert["record"], insert["schema"]?.string.map({ Name($0) }) == schema,
            insert["table"]?.string.map({ Name($0) }) == table
        else { return false }
        return key.allSatisfy { record[$0.column.text].map { Name($0.description) } == $0.value }
    }
}

/// What the sockets of one loop know of a user's receipt of a row.
package struct ReceiptAnswer: Sendable, Equatable {
    package enum Verdict: Sendable, Equatable {
        /// A socket has proven it whose app is on the screen, or does not say.
        case shown
        /// A socket has proven it; its app said that it is not on the screen.
        case received
        /// No app of those that were sent it is on the screen, so that nobody waits for their proof.
        case hidden
        /// None of the sockets was sent it: the apps have other conversations open.
        case unheard
        /// Those that were sent it are gone, and have not proven it.
        case lost
    }

    package let change: Int64
    package let user: Name
    package let device: Name?
    package let loop: Int
    package let verdict: Verdict

    package init(change: Int64, user: Name, device: Name? = nil, loop: Int, verdict: Verdict) {
        self.change = change
        self.user = user
        self.device = device
        self.loop = loop
        self.verdict = verdict
    }
}
