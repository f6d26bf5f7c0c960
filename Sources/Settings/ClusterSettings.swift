/// What `cluster` says.
package struct ClusterSettings: Sendable {
    /// Nil: the hub is alone.
    package let url: String?
    package let name: String
    /// Nil: those that the system trusts.
    package let caFile: String?
    package let logBytes: Int

    init(_ values: EffectiveValues) {
        url = values.text(.clusterURL)
        name = values.requiredText(.clusterName)
        caFile = values.text(.clusterCAFile)
        logBytes = values.integer(.clusterLogBytes)
    }
}
