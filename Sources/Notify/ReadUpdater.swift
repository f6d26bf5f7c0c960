import Hub
import Matching
import Push
import Stores
package import Wire

/// Read positions that move: withdraws the alerts of messages that were read, and updates the icons of the user's other phones.
/// Confined to the worker's thread.
final class ReadUpdater {
    private let context: PushContext
    private var queue = BadgeQueue()
    /// Alerts that were withdrawn.
    private(set) var withdrawn = 0
    /// Badges handed over for pushing, counted once for each phone.
    private(set) var badges = 0

    /// The time for a user to read on before the icons follow, in milliseconds; longer if another hub has the user's sockets and so
    /// knows which phone is in use.
    private static let delay: Int64 = 1000
    private static let delayElsewhere: Int64 = 6000
    /// The maximum number of users in one question to Postgres.
    private static let batch = 200

    init(_ context: PushContext) { self.context = context }

    /// The time when a badge is due, in monotonic milliseconds; nil if none is.
    var nextDue: Int64? { queue.nextDue }

    /// Withdraws the alerts of messages that were read.
    func withdraw(_ changes: [RowChange], _ store: PushStore) throws {
        let positions = changes.compactMap(context.rules.readPosition)
        guard !positions.isEmpty else { return }
        withdrawn += try store.withdraw(positions)
        guard context.rules.badge != nil else { return }
        let now = context.now.monotonic
        for user in Set<Name>(positions.map(\.user)) {
            queue.put(user, at: now + delay(of: user))
        }
    }

    /// Pushes the numbers whose time has come.
    func sendBadges(_ store: PushStore) throws {
        guard let statement = context.rules.badge, context.maySend, let due = queue.nextDue,
            due <= context.now.monotonic
        else { return }
        let time = context.now
        let users = queue.take(at: time.monotonic, limit: Self.batch)
        do {
            let badges = try store.badges(of: users, BadgeStatement(statement))
            let (phones, later) = try store.claim(badges, pause: context.rules.badgePause)
            for (user, moment) in later {
                queue.put(user, at: time.monotonic + max(1, moment - time.unix) + delay(of: user) - Self.delay)
            }
            send(phones, at: time)
        } catch {
            // The database is away, or a lock is held.
            for user in users { queue.put(user, at: time.monotonic + Self.delay) }
            throw error
        }
    }

    private func delay(of user: Name) -> Int64 {
        context.presence.users.isOnline(user) ? Self.delay : Self.delayElsewhere
    }

    private func send(_ phones: [BadgePhone], at time: HubTime) {
        let pushes = phones.filter { !isReading($0, at: time.monotonic) && !context.outbox.isBad($0.destination.token) }
            .compactMap { phone in
                // A push with nothing but a number is not a background push: the system sets the number, and wakes no app.
                BadgePayload(phone.badge).bytes(for: phone.destination.kind).map { payload in
                    Push(
                        to: .device(phone.destination), type: .alert, priority: 5,
                        expiration: (time.unix + context.rules.alertLife) / 1000, collapseID: "badge",
                        payload: payload, registeredAt: phone.registeredAt,
                        deadline: time.unix + context.rules.alertLife)
                }
            }
        badges += pushes.count
        context.outbox.sendUntracked(pushes)
    }

    /// Whether the phone's app is on the screen: the user reads there, or the app sets its icon itself.
    private func isReading(_ phone: BadgePhone, at now: Int64) -> Bool {
        guard let session = phone.session else { return false }
        return context.presence.devices.isShown(DeviceKey.makeKey(user: phone.user, session: session))
    }
}

/// The operator's configuration of read positions.
package struct ReadPositions: Sendable {
    /// The columns that contain read positions, by `SCHEMA.TABLE`.
    package var columns: [Name: Name]
    /// The columns of the same tables that name the user, and the conversation.
    package var user: Name
    package var conversation: Name
    /// The column of messages to compare them with.
    package var message: Name

    package init(columns: [Name: Name], user: Name, conversation: Name, message: Name) {
        self.columns = columns
        self.user = user
        self.conversation = conversation
        self.message = message
    }
}

extension PushRules {
    func isOfReading(_ table: Table) -> Bool {
        audience != nil && reading?.columns[table.fullName] != nil
    }

    /// Whether a change may have moved a read position.
    func isReading(_ change: RowChange) -> Bool { change.operation != .delete && isOfReading(change.table) }

    /// Returns the position that a change has moved; nil if it moved none.
    func readPosition(_ change: RowChange) -> ReadPosition? {
        guard let reading, isReading(change),
            let column = reading.columns[change.table.fullName],
            let record = change.record.map({ JSON(trusted: $0[...]) }), let position = Self.text(record[column.text]),
            let user = Self.text(record[reading.user.text]),
            let conversation = Self.text(record[reading.conversation.text])
        else { return nil }
        // A row from the WAL may come without its old version.
        if let old = change.oldRecord.flatMap({ JSON(trusted: $0[...])[column.text] }), Self.text(old) == position {
            return nil
        }
        return ReadPosition(user: user, conversation: conversation, position: position, place: change.id)
    }

    /// Returns the position of a message in its conversation.
    func written(_ change: RowChange) -> Name? {
        guard let reading, let record = change.record else { return nil }
        return Self.text(JSON(trusted: record[...])[reading.message.text])
    }

    private static func text(_ value: JSON?) -> Name? {
        guard let value, !value.isNull else { return nil }
        return Name(value.string ?? value.description)
    }
}

extension Table {
    /// `SCHEMA.TABLE`.
    fileprivate var fullName: Name { Name("\(schema).\(name)") }
}
