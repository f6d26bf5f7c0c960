package import Wire

/// A question to the sockets on one loop: has a user, or one of the user's devices, certainly received a message row?
///
/// It goes to the loop as a `FeedEvent`, after the row: a loop that is asked has passed the row to everyone who hears
/// it.
package struct ReceiptQuestion: Sendable {
    /// `RowChange.id`.
    package let change: Int64
    package let user: Name
    /// The claim `session_id` of the device's tokens; nil if any of the user's devices may answer.
    package let device: Name?
    /// The user's sockets on the loop.
    package let slots: [Slot]
    /// Identifies the row in broadcasts.
    package let row: MessageIdentity
    /// Whether any sign of life is enough: the message does not go by a socket.
    package let asksForLife: Bool
    /// Whether the app that proves it must be on the screen.
    package let demandsShown: Bool
    /// When the question expires, in monotonic milliseconds.
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

    /// Whether a socket may answer the question: its slot may belong to another user by now.
    func isFor(_ connection: Connection) -> Bool {
        guard connection.user == user else { return false }
        return device.map { connection.device == DeviceKey.makeKey(user: user, session: $0) } ?? true
    }

    /// Whether one answer applies to both.
    func isSame(as other: ReceiptQuestion) -> Bool {
        change == other.change && user == other.user && device == other.device
    }

    func without(_ slot: Slot) -> ReceiptQuestion {
        ReceiptQuestion(
            change: change, user: user, device: device, slots: slots.filter { $0 != slot }, row: row,
            asksForLife: asksForLife, demandsShown: demandsShown, until: until)
    }
}

/// A row's table and primary key, in a form comparable with messages of `realtime.broadcast_changes`.
package struct MessageIdentity: Sendable, Equatable {
    package let schema: Name
    package let table: Name
    /// The columns of the primary key, with their values as JSON text.
    package let key: [(column: Name, value: Name)]

    package init(schema: Name, table: Name, key: [(column: Name, value: Name)]) {
        self.schema = schema
        self.table = table
        self.key = key
    }

    package static func == (one: MessageIdentity, other: MessageIdentity) -> Bool {
        one.schema == other.schema && one.table == other.table && one.key.elementsEqual(other.key, by: ==)
    }

    /// Whether a change sent by `realtime.broadcast_changes` is the row's insert.
    func isMeant(by insert: JSON) -> Bool {
        guard !key.isEmpty, let record = insert["record"], insert["schema"]?.string.map({ Name($0) }) == schema,
            insert["table"]?.string.map({ Name($0) }) == table
        else { return false }
        return key.allSatisfy { record[$0.column.text].map { Name($0.description) } == $0.value }
    }
}

/// The answer of one loop's sockets about a user's receipt of a row.
package struct ReceiptAnswer: Sendable, Equatable {
    package enum Verdict: Sendable, Equatable {
        /// Proven by a socket whose app is on the screen, or does not report its state.
        case shown
        /// Proven by a socket whose app is reported not to be on the screen.
        case received
        /// None of the apps that were sent the row is on the screen, so their proof is not waited for.
        case hidden
        /// The row was sent to none of the sockets: the apps have other conversations open.
        case unheard
        /// The sockets that were sent the row are gone without having proven it.
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
