import Gateway
import Identity
import Logging
import Notify
import Ops
import Settings
import Synchronization

/// Reads the configuration again and puts in force what can change while the hub runs: all of it, or where anything is
/// wrong nothing.
final class Reload: Sendable {
    /// Reads all layers, as they were read at the start.
    typealias Reader = @Sendable () throws -> RoostConfiguration

    private let present: Mutex<RoostConfiguration>
    private let read: Reader?
    private let logger: Logger

    /// - Parameters:
    ///   - present: the configuration that is in force.
    ///   - read: nil where nothing is ever read again.
    init(_ present: RoostConfiguration, logger: Logger, read: Reader?) {
        self.present = Mutex(present)
        self.logger = logger
        self.read = read
    }

    /// The configuration that is in force.
    var configuration: RoostConfiguration { present.withLock { $0 } }

    /// Reloads at each signal until the task is cancelled.
    func follow(_ signals: AsyncStream<Void>, _ rooms: HubRooms) async {
        guard let read else { return }
        for await _ in signals { await reload(rooms, read) }
    }

    private func reload(_ rooms: HubRooms, _ read: Reader) async {
        let before = configuration
        var outcome = "configuration reloaded"
        rooms.supervision?.reloads()
        defer { rooms.supervision?.reloaded(outcome) }
        do {
            let found = try read()
            try check(found, before)
            let next = try before.reloaded(as: found)
            try await next.checkForServing()
            try await apply(next, before, rooms)
            present.withLock { $0 = next }
            log(before, next, found)
        } catch {
            outcome = "configuration not reloaded; the log says why"
            let reason = (error as? any Failure)?.sentence ?? "\(error)"
            logger.error("The configuration is not reloaded, and all stays as it was: \(reason)")
        }
    }

    /// A file that is gone is not meant to take every setting back to its default.
    private func check(_ found: RoostConfiguration, _ before: RoostConfiguration) throws(ConfigurationError) {
        guard let file = before.file, found.file == nil else { return }
        throw ConfigurationError(message: "\(file) was read before and does not exist any more; put it back.")
    }

    /// The keys first: they alone can still fail.
    private func apply(_ next: RoostConfiguration, _ before: RoostConfiguration, _ rooms: HubRooms) async throws {
        if let keys = rooms.keys, !before.changes(in: next).filter(Self.isKey).isEmpty {
            do { try await keys.adopt(next.keySettings) } catch { throw RunFailure("\(error).", .configuration) }
        }
        if let pushService = rooms.pushService {
            pushService.adopt(try next.pushRules(bundle: next.push.topic ?? "", audience: nil, facts: nil))
        }
        rooms.gateway.adopt(next.rules)
        rooms.cluster?.adopt(next.rules.presence)
        rooms.gateway.reloadCertificates()
        LogOutput.standard.adopt(next)
    }

    private static func isKey(_ key: String) -> Bool { key.hasPrefix("jwt.") || key.hasPrefix("jwks.") }

    private func log(_ before: RoostConfiguration, _ next: RoostConfiguration, _ found: RoostConfiguration) {
        let changes = before.changes(in: next)
        let what = changes.isEmpty ? "nothing that a reload changes is new" : changes.joined(separator: ", ")
        logger.notice("The configuration was reloaded: \(what).")
        for setting in before.postponed(in: found) { logger.warning("\(setting.sentence)") }
    }
}

extension Reload {
    /// What the operator's page shows of the configuration and the log, and what it may change.
    func dashboard(_ log: LogOutput, _ figures: @escaping @Sendable () -> [Figure]) -> DashboardSources {
        var sources = DashboardSources()
        sources.version = Roost.version
        sources.node = configuration.nodeName
        sources.figures = figures
        sources.settings = {
            self.configuration.values.map {
                DashboardSources.Setting(
                    key: $0.setting.key, value: $0.printed, origin: $0.value == nil ? "not set" : "\($0.origin)")
            }
        }
        sources.logLevel = { log.level.rawValue }
        sources.setLogLevel = { name in
            guard let level = Logger.Level(rawValue: name) else { return false }
            log.level = level
            return true
        }
        return sources
    }
}
