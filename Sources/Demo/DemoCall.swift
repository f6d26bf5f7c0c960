import Gateway

/// One call of the demo's API: the statement it stands for (API.md).
struct DemoCall {
    let role: String
    let sql: String
    let parameters: [String?]
    let isSession: Bool

    enum Match {
        case call(DemoCall)
        /// This one is to be used.
        case wrongMethod(HTTPRequest.Method)
        case unknown
    }

    static func match(_ request: HTTPRequest, path: Substring) -> Match {
        func call(_ method: HTTPRequest.Method, _ sql: String, _ parameters: [String?] = []) -> Match {
            guard request.method == method else { return .wrongMethod(method) }
            return .call(DemoCall(role: "authenticated", sql: sql, parameters: parameters, isSession: false))
        }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let body = String(decoding: request.body, as: UTF8.self)
        switch (parts.first, parts.count) {
        case ("session", 1):
            guard request.method == .get else { return .wrongMethod(.get) }
            return .call(
                DemoCall(role: "service_role", sql: "select demo.users()", parameters: [], isSession: true))
        case ("conversations", 1):
            return call(.get, "select demo.conversations()")
        case ("conversations", 3) where parts[2] == "messages":
            return call(
                .get, "select demo.messages($1::uuid, $2::int, $3::bigint)",
                [String(parts[1]), request.query["limit"], request.query["before"]])
        case ("messages", 1): return call(.post, "select demo.send($1::jsonb)", [body])
        case ("receipts", 1): return call(.post, "select demo.mark($1::jsonb)", [body])
        default: return .unknown
        }
    }
}
