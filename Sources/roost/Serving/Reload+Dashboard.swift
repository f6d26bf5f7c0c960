import Logging
import Ops
import Settings

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
