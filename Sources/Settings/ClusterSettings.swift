/// The settings of `cluster`.
package struct ClusterSettings: Sendable {
    /// Nil for a single hub.
    package let url: String?
    package let name: String
    /// Nil: the system's authorities.
    package let caFile: String?
    package let logBytes: Int

    init(_ values: EffectiveValues) {
        url = values.text(.clusterURL)
        name = values.requiredText(.clusterName)
        caFile = values.text(.clusterCAFile)
        logBytes = values.integer(.clusterLogBytes)
    }
}
