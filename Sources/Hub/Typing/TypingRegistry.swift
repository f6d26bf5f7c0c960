import OrderedCollections
import Synchronization
package import Wire

/// The users typing in channels that are watched from outside: what a Live Activity shows about its conversation.
///
/// Shared by all loops; safe from any thread, behind one lock that is held for a look-up. The loop that receives a
/// start or an end records it; silence ends typing by itself, as in the channels.
package final class TypingRegistry: Sendable {
    private struct Entry {
        let payload: [UInt8]
        let until: Int64
    }

    private let channels = Mutex<[ChannelKey: OrderedDictionary<ChannelTypist.ID, Entry>]>([:])
    private let isWatching = Atomic<Bool>(false)
    /// More names than this would not be read.
    private static let most = 20

    package init() {}

    /// Starts recording who types in a channel.
    package func watchChannel(_ key: ChannelKey) {
        channels.withLock { channels in
            if channels[key] == nil { channels[key] = [:] }
            isWatching.store(true, ordering: .relaxed)
        }
    }

    package func unwatchChannel(_ key: ChannelKey) {
        channels.withLock { channels in
            channels[key] = nil
            isWatching.store(!channels.isEmpty, ordering: .relaxed)
        }
    }

    /// Returns the users typing, with what their clients say of them: the payload of their signals, a JSON object.
    ///
    /// - Parameter now: in monotonic milliseconds.
    package func typists(in key: ChannelKey, at now: Int64) -> [(user: Name?, payload: [UInt8])] {
        channels.withLock { channels in
            channels[key]?.removeAll { $1.until <= now }
            return (channels[key] ?? [:]).map { id, entry in
                if case .user(let user) = id { (user, entry.payload) } else { (nil, entry.payload) }
            }
        }
    }

    func typingStarted(_ id: ChannelTypist.ID, _ signal: TypingSignal, in key: ChannelKey, until: Int64) {
        guard isWatching.load(ordering: .relaxed) else { return }
        channels.withLock { channels in
            guard let typists = channels[key], typists.count < Self.most || typists[id] != nil else { return }
            channels[key]?[id] = Entry(payload: signal.typingPayload, until: until)
        }
    }

    func typingEnded(_ id: ChannelTypist.ID, in key: ChannelKey) {
        guard isWatching.load(ordering: .relaxed) else { return }
        channels.withLock { _ = $0[key]?.removeValue(forKey: id) }
    }
}
