import Gateway
import Glibc
import Testing

/// What io_uring answers is what send(2) would have; skipped where the kernel or a container forbids it.
@Suite(.enabled(if: SendRing() != nil)) struct SendRingTests {
    private func pair() throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        let flags = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        try #require(socketpair(AF_UNIX, flags, 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    private func read(_ socket: Int32) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(socket, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    @Test func everySocketGetsTheBytesAndEveryOutcomeIsItsOwn() throws {
        let ring = try #require(SendRing())
        let (open, closed, full) = (try pair(), try pair(), try pair())
        defer { for end in [open.0, open.1, closed.0, full.0, full.1] { close(end) } }
        close(closed.1)
        while send(full.0, "x", 1, Int32(MSG_NOSIGNAL)) == 1 {}
        let message: [UInt8] = [1, 2, 3]
        let results = message.withUnsafeBytes { Array(ring.send($0, to: [closed.0, open.0, full.0, -1])) }
        #expect(results == [-EPIPE, 3, -EAGAIN, -EBADF])
        #expect(read(open.1) == message)
    }

    /// Nothing of one batch is left for the next.
    @Test func batchesFollowEachOther() throws {
        let ring = try #require(SendRing())
        let pairs = try (0..<100).map { _ in try pair() }
        defer { for (one, other) in pairs { for end in [one, other] { close(end) } } }
        for round in 0..<50 as Range<UInt8> {
            let message = [round, round]
            let chosen = pairs.dropFirst(Int(round))
            let results = message.withUnsafeBytes { Array(ring.send($0, to: chosen.map(\.0))) }
            #expect(results == chosen.map { _ in 2 })
            #expect(chosen.allSatisfy { read($0.1) == message })
        }
    }
}
