/// One thing that has to be right for the hub to be alive, or ready.
package struct HealthCheck: Sendable, Equatable {
    package let name: String
    /// A sentence without a full stop; nil where all is well.
    package let problem: String?

    package init(_ name: String, problem: String?) {
        self.name = name
        self.problem = problem
    }
}
