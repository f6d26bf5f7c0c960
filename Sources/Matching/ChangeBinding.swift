package import Wire

/// One entry of `config.postgres_changes`: the client's own text, its meaning and its identity.
///
/// A faulty entry is a binding too: the join reply has to echo it in its place, and only then is the client told about the
/// fault.
package struct ChangeBinding: Sendable {
    /// The entry as the client wrote it.
    package let raw: JSON
    package let parameters: Result<ChangeParameters, SubscriptionError>
    /// A stable id between 1 and 2³¹ − 1, the same on every hub: clients use it to choose the callback to call.
    package let parametersHash: Int
    /// Event, schema, table, filter and select with their defaults. Bytes, because two strings that Unicode calls
    /// equivalent are different values in Postgres.
    package let identity: [UInt8]

    /// - Parameter expressions: false if regular expressions are turned off.
    package init(_ raw: JSON, expressions: Bool = true) {
        self.raw = raw
        do throws(SubscriptionError) {
            let parameters = try ChangeParameters(raw)
            if !expressions, let condition = parameters.filter.conditions.first(where: \.isRegularExpression) {
                throw SubscriptionError(
                    "filter condition \(SubscriptionError.quoteText(condition.description)) is a regular expression, and these "
                        + "are turned off here (limits.regular_expressions); use like, ilike, eq or in")
            }
            self.parameters = .success(parameters)
        } catch {
            parameters = .failure(error)
        }
        identity = Self.identity(of: raw)
        parametersHash = Self.hashIdentity(identity)
    }

    /// Number of conditions that compare with a pattern.
    package var patterns: Int {
        guard case .success(let parameters) = parameters else { return 0 }
        return parameters.filter.conditions.count(where: \.isPattern)
    }

    /// The entry with `"id":id` in place of any id of the client's, and otherwise unchanged.
    package func echoJSON(id: Int) -> [UInt8] {
        var out = JSONWriter(reserving: raw.bytes.count + 20)
        out.openObject()
        raw.forEachMember { member in
            if !member.isNamed("id") { out.writeMember(member) }
        }
        out.writeMember("id", id)
        out.closeObject()
        return out.bytes
    }

    /// The ids of a channel's entries: equal parameters share an id, different ones never do.
    package static func ids(for bindings: [ChangeBinding]) -> [Int] {
        var idOf: [ChangeBinding: Int] = [:]
        var taken: Set<Int> = []
        return bindings.map { binding in
            if let id = idOf[binding] { return id }
            var id = binding.parametersHash
            while !taken.insert(id).inserted {
                id = id == Int(Int32.max) ? 1 : id + 1
            }
            idOf[binding] = id
            return id
        }
    }

    private static func identity(of raw: JSON) -> [UInt8] {
        guard raw.kind == .object else { return Array(raw.bytes) }
        func fieldBytes(_ key: String, default missing: String) -> [UInt8] {
            guard let value = raw[key], !value.isNull else { return Array(missing.utf8) }
            return value.string.map { Array($0.utf8) } ?? Array(value.bytes)
        }
        let select = raw["select"]?.elements.compactMap(\.string) ?? []
        let fields: [[UInt8]] =
            [
                Array(EventSet(clientText: raw["event"]?.string ?? "*").name.utf8),
                fieldBytes("schema", default: "public"), fieldBytes("table", default: "*"),
                fieldBytes("filter", default: ""),
            ] + (Selection(select)?.columns ?? []).map { Array($0.utf8) }
        // The length before each field distinguishes ("ab", "c") from ("a", "bc").
        return fields.flatMap { Array("\($0.count):".utf8) + $0 }
    }

    /// FNV-1a folded to 31 bits.
    private static func hashIdentity(_ bytes: [UInt8]) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        let folded = Int((hash ^ (hash >> 33)) & 0x7FFF_FFFF)
        return folded == 0 ? 1 : folded
    }
}

extension ChangeBinding: Hashable {
    package static func == (one: ChangeBinding, other: ChangeBinding) -> Bool {
        one.identity == other.identity
    }

    /// Hashes the whole identity: a client could make any number of bindings with the same `parametersHash`.
    package func hash(into hasher: inout Hasher) {
        identity.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}
