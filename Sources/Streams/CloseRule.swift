package import Wire

/// One entry of `streams.on_close`: the statement that is committed with certain ends of certain streams.
package struct CloseRule: Sendable, Equatable {
    /// The names of its streams as they are configured; nil for all, if the setting is one statement.
    package let pattern: String?
    package let statement: String
    /// The ends that it is for.
    package let reasons: Set<StreamEnding.Reason>
    /// The role that the statement runs with; nil for that of whoever ends the stream.
    package let role: Name?
    private let names: TopicPattern

    package init(
        pattern: String?, statement: String, reasons: Set<StreamEnding.Reason> = [.complete], role: Name? = nil
    ) {
        self.pattern = pattern
        self.statement = statement
        self.reasons = reasons
        self.role = role
        names = TopicPattern(pattern ?? "*")
    }

    /// Where an operator finds it.
    package var setting: String { "streams.on_close" + (pattern.map { " for \($0)" } ?? "") }

    /// Nil if the statement runs as whoever ends the stream. A role has no claims but its name: nobody is behind it.
    package var bearer: StreamBearer? {
        role.map { role in
            StreamBearer(role: role, claims: JSONWriter.object { $0.member("role", role.text) })
        }
    }

    /// What is said of a failure, with the entry that it comes from.
    package func failure(_ sentence: String) -> String { pattern.map { "\($0): \(sentence)" } ?? sentence }

    fileprivate func applies(to name: StreamName, _ reason: StreamEnding.Reason) -> Bool {
        reasons.contains(reason) && names.matches(name.text)
    }
}

extension [CloseRule] {
    /// The first that is for this end of this stream; nil if it ends without a row.
    package func first(for name: StreamName, _ reason: StreamEnding.Reason) -> CloseRule? {
        first { $0.applies(to: name, reason) }
    }
}
