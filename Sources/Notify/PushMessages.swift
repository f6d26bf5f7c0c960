package import Hub
package import Matching
import Postgres
import Push
import Stores
package import Wire
import Workers

/// New messages: asks Postgres for their audiences, and passes those to the alerts and to the Live Activities; and read positions, in
/// order among the messages. Confined to the worker's thread.
final class MessageReader {
    private let context: PushContext
    private let mailbox: PushServiceMailbox
    private let alerts: AlertSender
    private let activities: ActivityUpdater
    private let reading: ReadUpdater
    /// Messages that Postgres has not been asked about.
    private var messages: [RowChange] = []
    /// Messages that Postgres did not answer for, or not for every user, because of a lock or a deadline. The others go on meanwhile.
    private var waiting: [WaitingMessage] = []
    /// The time of the next question about those, in monotonic milliseconds.
    private var nextTry: Int64 = 0
    /// Finished messages behind some that wait: messages are settled in order.
    private var doneBehind = 0
    /// Messages whose audience was asked for.
    private(set) var count = 0
    /// Messages that no user, or not every user, was notified of, because Postgres did not report the audience in time.
    private(set) var lost = 0

    /// The cost of questions about messages, by the first one's number in the outbox.
    private var trials = BatchTrials<Int64>()
    /// True if the last question about waiting messages failed as a whole: the next one is about a single message.
    private var asksApart = false

    private struct WaitingMessage {
        let change: RowChange
        /// In monotonic milliseconds.
        let since: Int64
        var tries = 1
        /// The users notified already.
        var heard: Set<Name> = []
    }

    /// The maximum number of rows in one question to Postgres.
    private static let batch = 500
    /// The maximum number of tries, and the longest time, for a message that a lock or a deadline kept from being answered, and the
    /// pause between tries; in milliseconds.
    private static let mostTries = 3
    private static let patience: Int64 = 10_000
    private static let pause: Int64 = 1000

    init(
        _ context: PushContext, _ mailbox: PushServiceMailbox, _ alerts: AlertSender, _ activities: ActivityUpdater,
        _ reading: ReadUpdater
    ) {
        self.context = context
        self.mailbox = mailbox
        self.alerts = alerts
        self.activities = activities
        self.reading = reading
    }

    func add(_ changes: [RowChange]) { messages += changes }

    /// The time of the next question, in monotonic milliseconds; nil if nothing waits.
    var nextDue: Int64? { waiting.isEmpty ? nil : nextTry }

    /// Queues the alerts of the pending messages, and informs the activities of their conversations. A message is settled when its
    /// alerts are in the queue.
    func read(_ store: PushStore) throws {
        // Notifications of backends work without a statement.
        let statement = context.rules.audience ?? AudienceStatement.ofNobody
        try readWaiting(statement, store)
        while let first = messages.first {
            let batch = Array(messages.prefix(trials.mostRows ?? Self.batch))
            if trials.isHopeless {
                // A write that always works: if it fails, too, no message is to blame.
                try store.heartbeat()
                lost += 1
                context.logger.error(
                    """
                    The message \(first.messageKey) is not pushed: Postgres refused what its alerts need, or ended the session, \
                    each time that it was asked.
                    """)
            } else {
                do { try read(batch, statement, store) } catch {
                    // Neither other users' pushes nor the feed's position may wait for one message for ever.
                    trials.batchFailed(at: first.id, rows: batch.count, mayPass: Self.mayPass(error), at: .now)
                    throw error
                }
            }
            trials.batchSucceeded(rows: batch.count)
            count += batch.count { context.rules.isMessage($0) }
            messages.removeFirst(batch.count)
            doneBehind += batch.count
            settle()
            alerts.lookNow()
        }
    }

    /// Whether the server indicates that the same statement may succeed later: the problem is a lock, a resource, or a server that
    /// shuts down.
    private static func mayPass(_ error: any Error) -> Bool {
        guard let error = error as? PostgresError, error.kind == .server else { return false }
        return ["25", "40", "53", "55", "57", "58"].contains { error.sqlState?.hasPrefix($0) ?? false }
    }

    private func settle() {
        guard waiting.isEmpty, doneBehind > 0 else { return }
        mailbox.settled(doneBehind)
        doneBehind = 0
    }

    private func read(_ changes: [RowChange], _ statement: String, _ store: PushStore) throws {
        let batch = changes.filter(context.rules.isMessage)
        if !batch.isEmpty { try ask(about: batch, statement, store) }
        // After all messages that came with them: read positions withdraw the alerts of earlier messages, and none of later ones.
        try reading.withdraw(changes, store)
    }

    private func ask(about batch: [RowChange], _ statement: String, _ store: PushStore) throws {
        let audience = try store.audience(for: batch, statement: statement)
        try notify(audience.members, of: batch, store)
        guard !audience.unanswered.isEmpty else { return }
        let now = context.now.monotonic
        if waiting.isEmpty { nextTry = now + Self.pause }
        for index in audience.unanswered {
            let heard = Set(audience.members.lazy.filter { $0.change == index }.map(\.user))
            waiting.append(WaitingMessage(change: batch[index], since: now, heard: heard))
        }
        // They are settled when they are finished.
        doneBehind -= audience.unanswered.count
    }

    private func notify(_ members: [AudienceMember], of changes: [RowChange], _ store: PushStore) throws {
        try alerts.enqueue(members.map { ($0, changes[$0.change]) }, store)
        for member in members { activities.note(member) }
    }

    // MARK: Waiting messages

    private func readWaiting(_ statement: String, _ store: PushStore) throws {
        let now = context.now.monotonic
        guard !waiting.isEmpty, nextTry <= now else { return }
        nextTry = now + Self.pause
        let asked = Array(waiting.prefix(asksApart ? 1 : Self.batch))
        waiting.removeFirst(asked.count)
        do {
            let changes = asked.map(\.change)
            let audience = try store.audience(for: changes, statement: statement)
            let members = audience.members.filter { !asked[$0.change].heard.contains($0.user) }
            try notify(members, of: changes, store)
            let unanswered = Set(audience.unanswered)
            doneBehind += asked.count - unanswered.count
            waitAgain(
                asked.enumerated().filter { unanswered.contains($0.offset) }.map { index, message in
                    var message = message
                    message.heard.formUnion(members.lazy.filter { $0.change == index }.map(\.user))
                    return message
                })
            asksApart = false
        } catch {
            asksApart = true
            waitAgain(asked)
            throw error
        }
        settle()
        alerts.lookNow()
    }

    private func waitAgain(_ asked: [WaitingMessage]) {
        let now = context.now.monotonic
        let (over, left) = asked.reduce(into: (over: [WaitingMessage](), left: [WaitingMessage]())) { parts, message in
            var message = message
            message.tries += 1
            if message.tries > Self.mostTries, now - message.since >= Self.patience {
                parts.over.append(message)
            } else {
                parts.left.append(message)
            }
        }
        waiting += left
        guard !over.isEmpty else { return }
        lost += over.count
        doneBehind += over.count
        context.logger.error(
            """
            \(over.count) messages are not pushed, or not to everybody: Postgres did not answer alerts.audience, or what policies \
            read is locked, for \(Self.patience / 1000) seconds; make the statement faster, or see what locks its tables.
            """)
    }
}

/// The notification for one member of a message's audience, in the variables of the templates.
struct MessageNotification {
    let variables: TemplateVariables
    /// The id of the message's author, if the statement returns it.
    let sender: Name?
    let conversation: Name?

    /// - Parameter row: the result of `alerts.audience` or `live_activity.facts`, as a JSON object.
    init(_ row: [UInt8], badge: Int? = nil, preview: Preview) {
        var variables = TemplateVariables(JSON(trusted: row[...]))
        sender = variables["sender_id"].map { Name(Self.text($0)) }
        conversation = variables["conversation_id"].map { Name(Self.text($0)) }
        if variables["preview"] == nil, let body = variables["body"] { variables["preview"] = body }
        variables.cut("preview", to: preview)
        if let badge, variables["unread"] == nil { variables.set("unread", badge) }
        self.variables = variables
    }

    /// Updates `facts` with the message's information about its conversation.
    ///
    /// - Parameter now: seconds since 1970, for a message without a time of its own.
    func note(in facts: inout ConversationFacts, at now: Int64) {
        if let name = variables["conversation_name"].map(Self.text) { facts.name = name }
        if let unread = variables["unread"]?.int { facts.unread = unread }
        guard let text = variables["preview"].map(Self.text) else { return }
        facts.lastMessage = ConversationFacts.Message(
            text: text, senderID: sender?.text ?? "", senderName: variables["sender_name"].map(Self.text) ?? "",
            at: variables["sent_at"]?.int.map { Int64($0) } ?? now)
    }

    private static func text(_ value: JSON) -> String { value.string ?? value.description }
}

extension RowChange {
    /// The name of a message, the same at every hub and after every restart: its table and primary key. Without a key, the change's
    /// number in the outbox, which all hubs read, takes its place.
    package var messageKey: Name {
        Name(messageKeyText)
    }

    private var messageKeyText: String {
        if isNotification { return notificationKey.text }
        let name = "\(table.schema).\(table.name)"
        guard let record else { return "\(name) #\(id)" }
        let row = JSON(trusted: record[...])
        let keys = table.columns.filter(\.isPrimaryKey).compactMap { row[$0.name.text]?.description }
        return keys.isEmpty ? "\(name) #\(id)" : name + " " + keys.joined(separator: " ")
    }

    /// The name of a message for the app, which knows its table: the primary key alone. Nil if the key is not one column.
    package var messageID: String? {
        guard let record else { return nil }
        let keys = table.columns.filter(\.isPrimaryKey)
        guard keys.count == 1, let value = keys.first.flatMap({ JSON(trusted: record[...])[$0.name.text] }) else {
            return nil
        }
        return value.string ?? value.description
    }

    /// The identity that a broadcast of the same row is compared with.
    package var identity: MessageIdentity {
        guard let record else { return .unknown }
        let row = JSON(trusted: record[...])
        return MessageIdentity(
            schema: table.schema, table: table.name,
            key: table.columns.filter(\.isPrimaryKey).compactMap { column in
                row[column.name.text].map { (column.name, Name($0.description)) }
            })
    }

    /// The time when the message was committed, in milliseconds since 1970 and rounded down to the second, as APNs counts; nil if
    /// unknown.
    var committedAtMilliseconds: Int64? { committedAtMicroseconds.map { $0 / 1_000_000 * 1000 } }
}
