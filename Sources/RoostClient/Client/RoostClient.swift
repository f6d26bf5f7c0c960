public import Foundation
import Synchronization

/// A self-maintaining connection to a Roost hub. Callable from any thread.
///
/// It connects when the first channel is subscribed, reconnects after every loss, resumes row changes where they broke
/// off, and hides short losses. It lives as long as it, one of its channels or one of their sequences is referenced.
public final class RoostClient: Sendable {
    private let core: ClientCore
    private let channels = Mutex<[String: WeakChannel]>([:])
    private let currentAppState = Mutex(AppState.active)

    private struct WeakChannel {
        weak var channel: Channel?
    }

    /// Creates a client of the hub at `url`: `wss://HOST`, or the `https://HOST` that web pages use. A path is kept;
    /// without one, `/realtime/v1` is used. A URL that cannot be a hub's is a programming error and traps.
    public convenience init(url: URL, configuration: Configuration) {
        self.init(url: url, configuration: configuration, transport: PlatformTransport())
    }

    /// Creates a client with the defaults; for `token` see ``Configuration``.
    public convenience init(url: URL, token: @escaping @Sendable () async throws -> String) {
        self.init(url: url, configuration: Configuration(token: token))
    }

    /// Creates a client with its own transport, for tests.
    package init(url: URL, configuration: Configuration, transport: any WebSocketTransport) {
        do {
            core = ClientCore(try HubEndpoint(url), configuration, transport)
        } catch {
            preconditionFailure(error.description)
        }
    }

    /// Connects without a channel. `Channel.subscribe()` connects automatically.
    public func connect() { core.postCommand(.connect) }

    /// Leaves all channels, ends their sequences and closes the connection. Returns once it is closed.
    public func disconnect() async { await core.engine.disconnect() }

    /// The channel of that name, with or without `realtime:`. While it is in use all callers get the same one, and only
    /// the first call configures it.
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

    /// The current state of the connection for the UI.
    public var state: ConnectionState { core.mirror.state }

    /// The connection's states for the UI, beginning with the current one.
    public var states: ConnectionStates {
        let mailbox = Mailbox<ConnectionState>(limit: 64, countsMissed: false)
        let id = core.nextID()
        core.postCommand(.watchState(id, mailbox))
        let lease = Lease { [core] in core.postCommand(.unwatch(id)) }
        return RoostSequence { await mailbox.element(lease) }
    }

    /// The socket's actual events, from this moment on.
    public var socketEvents: SocketEvents {
        let mailbox = Mailbox<SocketEvent>(limit: 256, countsMissed: false)
        let id = core.nextID()
        core.postCommand(.watchSocket(id, mailbox))
        let lease = Lease { [core] in core.postCommand(.unwatch(id)) }
        return RoostSequence { await mailbox.element(lease) }
    }

    /// The app's state, which determines how long a loss is hidden, here and at the hub. Set it from `scenePhase` or
    /// `UIApplication`'s notifications.
    public var appState: AppState {
        get { currentAppState.withLock { $0 } }
        set {
            currentAppState.withLock { state in
                state = newValue
                core.postCommand(.appState(newValue))
            }
        }
    }

    /// Call this when the system reports that the network is back (`NWPathMonitor`): the next attempt is made at once,
    /// and a connection that only looks alive is given up within seconds.
    public func networkIsBack() { core.postCommand(.networkIsBack) }
}

/// The connection's states for the UI over time. Ends with the client.
public typealias ConnectionStates = RoostSequence<ConnectionState>
/// The socket's actual events. Ends with the client.
public typealias SocketEvents = RoostSequence<SocketEvent>
