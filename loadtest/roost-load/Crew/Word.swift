/// What a worker tells the parent.
enum Word: Codable, Sendable {
    /// Ready to connect.
    case prepared
    /// Every socket has joined or was refused.
    case connected
    case report(WorkerReport)
    /// Nothing more is to be done.
    case finished
    case stopped(claims: [UInt64])
    case result(WorkerResult)
    /// It cannot go on: one sentence.
    case failed(String)
}
