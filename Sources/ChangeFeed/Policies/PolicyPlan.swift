/// How the engine answers for one table, role and command, until the catalog changes.
struct PolicyPlan {
    struct Key: Hashable {
        let table: UInt32
        let role: String
        let command: PolicyQuestion.Command

        init(_ question: PolicyQuestion) {
            table = question.table.oid
            role = question.role
            command = question.command
        }

        /// By bytes: Postgres tells roles apart that Unicode calls equivalent.
        static func == (one: Key, other: Key) -> Bool {
            one.table == other.table && one.command == other.command && one.role.utf8.elementsEqual(other.role.utf8)
        }
    }

    enum Way {
        /// The sentence says what the role lacks.
        case denied(String)
        case unrestricted
        /// No policy grants anything.
        case nothing
        /// The sentence says why Postgres takes no such function.
        case failed(String)
        case ask(PolicyFunction)
    }

    let description: PolicyDescription
    private(set) var way: Way
    private let madeAt = ContinuousClock.now
    /// Between tries of what Postgres did not take.
    private static let rest = Duration.seconds(1)

    /// - Parameter name: of the function to create, where one is needed.
    init(_ question: PolicyQuestion, _ description: PolicyDescription, name: String, serverVersion: Int) {
        self.description = description
        if let denial = PolicyDenial(question, description, serverVersion: serverVersion) {
            way = .denied(denial.sentence)
        } else if !description.isRestricted {
            way = .unrestricted
        } else if let function = PolicyFunction(name: name, question: question, description: description) {
            way = .ask(function)
        } else {
            way = .nothing
        }
    }

    /// Its function, where one has to be asked.
    var function: PolicyFunction? {
        guard case .ask(let function) = way else { return nil }
        return function
    }

    /// Postgres took no such function, and might by now: what the policies call may be there again.
    func isWorthRetrying(at now: ContinuousClock.Instant) -> Bool {
        guard case .failed = way else { return false }
        return now - madeAt > Self.rest
    }

    mutating func fail(_ sentence: String) { way = .failed(sentence) }
}
