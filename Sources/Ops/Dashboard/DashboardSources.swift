/// Where the page's data comes from and what its buttons do, as far as other rooms know it.
package struct DashboardSources: Sendable {
    /// A setting as it may be shown.
    package struct Setting: Sendable {
        package let key: String
        package let value: String
        package let origin: String

        package init(key: String, value: String, origin: String) {
            self.key = key
            self.value = value
            self.origin = origin
        }
    }

    package var version = ""
    package var node = ""
    /// All figures of the metrics.
    package var figures: @Sendable () -> [Figure] = { [] }
    /// What is in force.
    package var settings: @Sendable () -> [Setting] = { [] }
    package var logLevel: @Sendable () -> String = { "" }
    /// False where there is no such level.
    package var setLogLevel: @Sendable (String) -> Bool = { _ in false }

    package init() {}
}
