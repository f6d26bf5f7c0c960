import Hub
import Matching
import Postgres
import Push
import Stores
import Wire
import Workers

/// New messages: asks Postgres who is to hear of them, and hands that to the alerts and to the Live Activities.
/// Confined to the worker's thread.
final class MessageReader {
    private let context: PushContext
    private let mailbox: PushServiceMailbox
    private let alerts: AlertSender
    private let activities: ActivityUpdater
    /// Messages that Postgres has not been asked about.
    private var messages: [RowChange] = []
    /// Messages whose audience was asked for.
    private(set) var count = 0
    /// Messages that nobody was notified of, because Postgres did not say in time who is to hear of them.
    private(set) var lost = 0

    /// What asking about messages has cost, by the first one's number in the outbox.
    private var trials = BatchTrials<Int64>()

    /// Rows of one question to Postgres.
    private static let batch = 500
    /// How often a question is asked that a lock or a deadline kept from being answered.
    private static let mostTries = 3

    init(
        _ context: PushContext, _ mailbox: PushServiceMailbox, _ alerts: AlertSender, _ activities: ActivityUpdater
    ) {
        self.context = context
        self.mailbox = mailbox
        self.alerts = alerts
        self.activities = activities
    }

    func add(_ changes: [RowChange]) { messages += changes }

    /// Puts the alerts of the messages at hand into the queue, and tells the activities of their conversations. A
    /// message is settled when its alerts are in the queue.
    func read(_ store: PushStore) throws {
        guard let statement = context.rules.audience else { return }
        while let first = messages.first {
            let batch = Array(messages.prefix(trials.mostRows ?? Self.batch))
            if trials.isHopeless {
                lost += 1
                context.logger.error(
                    """
                    The message \(first.messageKey) is not pushed: Postgres refused what its alerts need, or ended the session, \
                    each time that it was asked.
                    """)
            } else {
                do { try read(batch, statement, store) } catch {
                    // Nobody else's pushes, nor the feed's place, may wait for one message for ever.
                    if Self.comesAgain(error) { trials.sessionEnded(at: first.id, rows: batch.count) }
                    throw error
                }
            }
            trials.done(rows: batch.count)
            count += batch.count
            messages.removeFirst(batch.count)
            mailbox.settled(batch.count)
            alerts.lookNow()
        }
    }

    /// Whether the same messages would meet the same error: not where it is about locks, room, or a server that goes.
    private static func comesAgain(_ error: any Error) -> Bool {
        guard let error = error as? PostgresError else { return false }
        switch error.kind {
        case .connection: return true
        case .timeout: return false
        case .server: return !["25", "40", "53", "55", "57", "58"].contains { error.sqlState?.hasPrefix($0) ?? false }
        }
    }

    private func read(_ batch: [RowChange], _ statement: String, _ store: PushStore) throws {
        var asked = Array(batch.enumerated())
        for attempt in 1... {
            let audience = try store.audience(for: asked.map(\.element), statement: statement)
            let members = audience.members.map { ($0, asked[$0.change].element) }
            try alerts.enqueue(members, store)
            for (member, _) in members { activities.note(member) }
            guard !audience.unanswered.isEmpty else { return }
            guard attempt < Self.mostTries else {
                lost += audience.unanswered.count
                context.logger.error(
                    """
                    \(audience.unanswered.count) messages are not pushed: Postgres did not answer alerts.audience in \
                    time, \(attempt) times; make the statement faster, or see what locks its tables.
                    """)
                return
            }
            asked = audience.unanswered.map { asked[$0] }
        }
    }
}

/// What one member of a message's audience is notified of, in the words of the templates.
struct MessageNotification {
    let variables: TemplateVariables
    /// The id of whoever wrote the message, where the statement says so.
    let sender: Name?
    let conversation: Name?

    /// - Parameter row: what `alerts.audience` or `live_activity.facts` returned, as a JSON object.
    init(_ row: [UInt8], badge: Int? = nil, preview: Preview) {
        var variables = TemplateVariables(JSON(trusted: row[...]))
        sender = variables["sender_id"].map { Name(Self.text($0)) }
        conversation = variables["conversation_id"].map { Name(Self.text($0)) }
        if variables["preview"] == nil, let body = variables["body"] { variables["preview"] = body }
        variables.cut("preview", to: preview)
        if let badge, variables["unread"] == nil { variables.set("unread", badge) }
        self.variables = variables
    }

    /// Notes in `facts` what the message says of its conversation.
    ///
    /// - Parameter now: seconds since 1970, for a message that does not say when it was sent.
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
    /// The name of a message, the same at every hub and after every restart: its table and primary key. Where there is
    /// no key, the change's number in the outbox stands for it, which all hubs read.
    var messageKey: Name {
        Name(messageKeyText)
    }

    private var messageKeyText: String {
        let name = "\(table.schema).\(table.name)"
        guard let record else { return "\(name) #\(id)" }
        let row = JSON(trusted: record[...])
        let keys = table.columns.filter(\.isPrimaryKey).compactMap { row[$0.name.text]?.description }
        return keys.isEmpty ? "\(name) #\(id)" : name + " " + keys.joined(separator: " ")
    }

    /// The name of a message for the app, which knows its table: the primary key alone. Nil where that is not one
    /// column.
    var messageID: String? {
        guard let record else { return nil }
        let keys = table.columns.filter(\.isPrimaryKey)
        guard keys.count == 1, let value = keys.first.flatMap({ JSON(trusted: record[...])[$0.name.text] }) else {
            return nil
        }
        return value.string ?? value.description
    }

    /// When the message was committed, in milliseconds since 1970 and to the second, as APNs counts; nil where that is
    /// not known.
    var committedAtMilliseconds: Int64? { committedAtMicroseconds.map { $0 / 1_000_000 * 1000 } }
}
