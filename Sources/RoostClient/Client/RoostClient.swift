public import Foundation
import Synchronization

/// A connection to a Roost hub that looks after itself. All of it may be called from any thread.
///
/// It connects when the first channel is subscribed, comes back after every loss, resumes row changes where they broke
/// off, and does not show short losses. It lives as long as somebody holds it, one of its channels or a sequence of
/// theirs.
public final class RoostClient: Sendable {
    private let core: ClientCore
    private let channels = Mutex<[String: WeakChannel]>([:])
    private let currentAppState = Mutex(AppState.active)

    private struct WeakChannel {
        weak var channel: Channel?
    }

    /// Makes a client of the hub at `url`: `wss://HOST`, or the `https://HOST` that a web page uses. A path is kept, and
    /// `/realtime/v1` stands in for none. A URL that cannot be that of a hub is a programmer's error and traps.
    public convenience init(url: URL, configuration: Configuration) {
        self.init(url: url, configuration: configuration, transport: PlatformTransport())
    }

    /// Makes a client with the defaults; `token` is that of ``Configuration``.
    public convenience init(url: URL, token: @escaping @Sendable () async throws -> String) {
        self.init(url: url, configuration: Configuration(token: token))
    }

    /// Makes a client whose connections the transport makes; tests have their own.
    package init(url: URL, configuration: Configuration, transport: any WebSocketTransport) {
        do {
            core = ClientCore(try HubEndpoint(url), configuration, transport)
        } catch {
            preconditionFailure(error.description)
        }
    }

    /// Connects without a channel. `Channel.subscribe()` connects by itself.
    public func connect() { core.post(.connect) }

    /// Leaves all channels, ends all of their sequences and closes the connection. Returns when it is closed.
    public func disconnect() async { await core.engine.disconnect() }

    /// The channel of that name, with or without `realtime:` in front. While it is in use all who ask get the same one, and
    /// only the first configures it.
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

    /// The connection's state as a UI shows it, at this moment.
    public var state: ConnectionState { core.mirror.state }

    /// The connection's state as a UI shows it, from this moment on. The sequence begins with the current state.
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

    /// What the app is doing, which decides how long a loss is hidden, here and at the hub. Set it from `scenePhase` or
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

    /// Call this when the system says that the network is back (`NWPathMonitor`): the next attempt is made at once, and a
    /// connection that only looks alive is given up within seconds.
    public func networkIsBack() { core.post(.networkIsBack) }
}

/// The connection's state as a UI shows it, over time. Ends when the client does.
public typealias ConnectionStates = RoostSequence<ConnectionState>
/// What really happens to the socket. Ends when the client does.
public typealias SocketEvents = RoostSequence<SocketEvent>
