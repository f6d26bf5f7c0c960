public import Foundation
import Synchronization

/// A connection to a Roost hub that looks after itself.
///
/// It connects when the first channel is subscribed, comes back after every loss, resumes row changes where they broke
/// off, and keeps short losses to itself. It lives as long as somebody holds it, one of its channels or a sequence of
/// theirs.
public final class RoostClient: Sendable {
    private let core: ClientCore
    private let channels = Mutex<[String: WeakChannel]>([:])
    private let currentAppState = Mutex(AppState.active)

    private struct WeakChannel {
        weak var channel: Channel?
    }

    /// A client of the hub at `url`: `wss://HOST`, or the `https://HOST` that a web page uses. A path is kept, and
    /// `/realtime/v1` stands in for none. A URL that is none of a hub is a programmer's error and traps.
    public convenience init(url: URL, configuration: Configuration) {
        self.init(url: url, configuration: configuration, transport: PlatformTransport())
    }

    /// A client with the defaults; `token` is that of ``Configuration``.
    public convenience init(url: URL, token: @escaping @Sendable () async throws -> String) {
        self.init(url: url, configuration: Configuration(token: token))
    }

    /// - Parameter transport: what makes the connections; tests have their own.
    package init(url: URL, configuration: Configuration, transport: any WebSocketTransport) {
        do {
            core = ClientCore(try HubEndpoint(url), configuration, transport)
        } catch {
            preconditionFailure(error.description)
        }
    }

    /// Connects without a channel. `Channel.subscribe()` does it by itself.
    public func connect() { core.post(.connect) }

    /// Leaves all channels, ends all of their sequences and closes the connection; returns when it is closed.
    public func disconnect() async { await core.engine.disconnect() }

    /// The channel of that name, with or without `realtime:` before it. While one is in use it is the same for all who
    /// ask, and only the first configures it.
    public func channel(_ name: String, configure: (inout ChannelConfiguration) -> Void = { _ in }) -> Channel {
        let topic = name.hasPrefix("realtime:") ? name : "realtime:" + name
        return channels.withLock { channels in
            if let channel = channels[topic]?.channel, !channel.isOver { return channel }
            channels = channels.filter { $0.value.channel != nil }
            var configuration = ChannelConfiguration()
            configure(&configuration)
            let channel = Channel(topic, configuration, core)
            channels[topic] = WeakChannel(channel: channel)
            return channel
        }
    }

    /// What a UI shows, at this moment.
    public var state: ConnectionState { core.mirror.state }

    /// What a UI shows, from this moment on; it begins with the current state.
    public var states: ConnectionStates {
        let mailbox = Mailbox<ConnectionState>(limit: 64, countsMissed: false)
        let id = core.nextID()
        core.post(.watchState(id, mailbox))
        let lease = Lease { [core] in core.post(.unwatch(id)) }
        return RoostSequence { await mailbox.element(lease) }
    }

    /// What really happens to the socket, from this moment on.
    public var socketEvents: SocketEvents {
        let mailbox = Mailbox<SocketEvent>(limit: 256, countsMissed: false)
        let id = core.nextID()
        core.post(.watchSocket(id, mailbox))
        let lease = Lease { [core] in core.post(.unwatch(id)) }
        return RoostSequence { await mailbox.element(lease) }
    }

    /// What the app is doing: it decides how long a loss is hidden, here and at the hub. Set it from `scenePhase` or
    /// `UIApplication`'s notifications.
    public var appState: AppState {
        get { currentAppState.withLock { $0 } }
        set {
            currentAppState.withLock { state in
                state = newValue
                core.post(.appState(newValue))
            }
        }
    }

    /// To be called when the network is said to be back (`NWPathMonitor`): the next attempt is made at once, and a
    /// connection that only looks alive is found out within seconds.
    public func networkIsBack() { core.post(.networkIsBack) }
}

/// Ends when the client does.
public typealias ConnectionStates = RoostSequence<ConnectionState>
/// Ends when the client does.
public typealias SocketEvents = RoostSequence<SocketEvent>

extension Mailbox {
    /// For buffers that count nothing and end without errors.
    ///
    /// - Parameter lease: held while somebody may still wait.
    func element(_ lease: Lease) async -> Element? {
        do throws(RoostError) {
            while let delivery = try await next() {
                if case .element(let element) = delivery { return withExtendedLifetime(lease) { element } }
            }
        } catch {
            // These buffers are never finished with an error; an end is all that it could mean.
        }
        return nil
    }
}
