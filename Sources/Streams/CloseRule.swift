package import Wire

/// One entry of `streams.on_close`: the statement that is committed with certain ends of certain streams.
package struct CloseRule: Sendable, Equatable {
    /// The configured pattern for stream names; nil for all, if the setting is a single statement.
    package let pattern: String?
    package let statement: String
    /// The ends to which the rule applies.
    package let reasons: Set<StreamEnding.Reason>
    /// The role that the statement runs with; nil for the role of the client that ends the stream.
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

    /// The name of the setting, for operators.
    package var setting: String { "streams.on_close" + (pattern.map { " for \($0)" } ?? "") }

    /// The rights of the rule's role; nil if the statement runs as the client that ends the stream. The only claim is
    /// the role's name, because there is no user behind it.
    package var bearer: StreamBearer? {
        role.map { role in
            StreamBearer(role: role, claims: JSONWriter.object { $0.writeMember("role", role.text) })
        }
    }

    /// A failure's sentence, with the entry that it comes from.
    package func failureText(_ sentence: String) -> String { pattern.map { "\($0): \(sentence)" } ?? sentence }

    fileprivate func applies(to name: StreamName, _ reason: StreamEnding.Reason) -> Bool {
        reasons.contains(reason) && names.matches(name.text)
    }
}

extension [CloseRule] {
    /// The first rule that applies to this end of this stream; nil if it ends without a row.
    package func first(for name: StreamName, _ reason: StreamEnding.Reason) -> CloseRule? {
        first { $0.applies(to: name, reason) }
    }
}
