import Hub
import Postgres

/// Changes as the parameters of StorePresence.sql.
struct PresenceBatch {
    private var gone = TextArray()
    private var refs = TextArray()
    private var topics = TextArray()
    private var privates = TextArray()
    private var keys = TextArray()
    private var madeKeys = TextArray()
    private var users = TextArray()
    private var payloads = TextArray()
    private var appStates = TextArray()

    init(_ changes: ArraySlice<PresenceLog.Change>) {
        for change in changes {
            guard let record = change.record else {
                gone.append(change.ref.utf8)
                continue
            }
            refs.append(change.ref.utf8)
            topics.append(StoredText.encode(record.channel.topic))
            privates.append(record.channel.isPrivate)
            keys.append(StoredText.encode(record.key))
            madeKeys.append(record.hasMadeKey)
            users.append(record.user.map { StoredText.encode($0) })
            payloads.append(record.payload)
            appStates.append(record.appState?.rawValue.utf8)
        }
    }

    func parameters(of node: String) -> [String?] {
        let arrays = [gone, refs, topics, privates, keys, madeKeys, users, payloads, appStates]
        return [node] + arrays.map(\.literal)
    }
}
