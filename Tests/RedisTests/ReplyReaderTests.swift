import TestSupport
import Testing

@testable import Redis

@Suite struct ReplyReaderTests {
    /// Feeds the bytes in pieces of the length and reads all that is whole.
    private func read(
        _ bytes: [UInt8], pieces: Int = ReplyReader.pieceSize, bounds: ReplyReader.Bounds = .init()
    ) throws(RedisFailure) -> [RedisValue] {
        let reader = ReplyReader(bounds: bounds)
        var values: [RedisValue] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            var problem: RedisFailure?
            piece.withUnsafeBytes { raw in
                do throws(RedisFailure) { try reader.feedBytes(raw) } catch { problem = error }
            }
            if let problem { throw problem }
            while let value = try reader.nextReply() { values.append(value) }
        }
        return values
    }

    private func read(_ text: String) throws(RedisFailure) -> [RedisValue] { try read(Array(text.utf8)) }

    @Test func everyKind() throws {
        #expect(try read("+OK\r\n") == [.status("OK")])
        #expect(try read("-ERR no\r\n") == [.error("ERR no")])
        #expect(try read(":-9223372036854775808\r\n:7\r\n") == [.integer(.min), .integer(7)])
        #expect(try read("$-1\r\n*-1\r\n") == [.null, .null])
        #expect(try read("$0\r\n\r\n*0\r\n") == [.bytes([]), .array([])])
        #expect(try read("$4\r\n\r\n\r\n\r\n") == [.bytes([13, 10, 13, 10])])
        #expect(
            try read("*3\r\n*2\r\n:1\r\n$1\r\na\r\n*0\r\n*1\r\n*1\r\n$-1\r\n")
                == [.array([.array([.integer(1), .bytes([97])]), .array([]), .array([.array([.null])])])])
    }

    @Test func piecesMakeNoDifference() throws {
        let long = String(repeating: "x", count: 5000)
        let text =
            "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5000\r\n\(long)\r\n+OK\r\n*2\r\n:1\r\n*1\r\n-ERR\r\n$-1\r\n$2\r\n\r\n\r\n"
        let whole = try read(text)
        #expect(whole.count == 5)
        for pieces in 1...97 { #expect(try read(Array(text.utf8), pieces: pieces) == whole) }
    }

    @Test(arguments: [
        "hello\r\n", "%1\r\n+a\r\n+b\r\n", ":1x\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "*99999999999\r\n", "\r\n",
        "\u{0}\r\n",
    ])
    func whatIsNoReply(text: String) {
        #expect(throws: RedisFailure.self) { try read(text) }
    }

    @Test func bounds() throws {
        var bounds = ReplyReader.Bounds()
        bounds.bulk = 100_000
        bounds.reply = 250_000
        bounds.elements = 100
        bounds.depth = 3
        func bulk(_ count: Int) -> String { "$\(count)\r\n\(String(repeating: "x", count: count))\r\n" }
        func tries(_ text: String) -> Bool {
            do { return try !read(Array(text.utf8), bounds: bounds).isEmpty } catch { return false }
        }
        #expect(tries(bulk(100_000)))
        #expect(!tries(bulk(100_001)))
        #expect(tries("*2\r\n\(bulk(100_000))\(bulk(100_000))"))
        #expect(!tries("*3\r\n\(bulk(100_000))\(bulk(100_000))\(bulk(100_000))"))
        #expect(tries("*99\r\n\(String(repeating: ":1\r\n", count: 99))"))
        #expect(!tries("*100\r\n\(String(repeating: ":1\r\n", count: 100))"))
        #expect(tries("*1\r\n*1\r\n*1\r\n:1\r\n"))
        #expect(!tries("*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"))
        // What is announced is not waited for beyond the bounds, and a line has an end.
        for endless in ["$9000000000\r\n", "+", "-", ":", "*", "$", "*1\r\n$200000\r\n"] {
            let text = endless + String(repeating: "1", count: 300_000)
            #expect(throws: RedisFailure.self) { try read(Array(text.utf8), bounds: bounds) }
        }
    }

    @Test func damagedBytesAreReadOrRefused() {
        let corpus = [
            "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$11\r\n0123\r\n6789a\r\n", "+OK\r\n:12\r\n-ERR x y\r\n$-1\r\n*-1\r\n",
            "*2\r\n*2\r\n$3\r\n1-0\r\n*6\r\n$1\r\np\r\n$1\r\n0\r\n$1\r\nt\r\n$1\r\n7\r\n$1\r\nb\r\n$2\r\nxy\r\n:9\r\n",
        ].map { Array($0.utf8) }
        let tokens = [
            "*", "$", ":", "+", "-", "\r\n", "\r", "\n", "-1", "99999999999999999999", "2147483647", "0", "*9\r\n",
        ]
        .map { Array($0.utf8) }
        var mutator = Mutator(random: SeededGenerator(seed: 21), tokens: tokens)
        var bounds = ReplyReader.Bounds()
        bounds.bulk = 1000
        bounds.reply = 2000
        bounds.elements = 50
        var (read, refused) = (0, 0)
        for round in 0..<20_000 {
            let bytes = mutator.mutate(corpus[round % corpus.count], with: corpus)
            let pieces = 1 + round % 13
            do {
                let values = try self.read(bytes, pieces: pieces, bounds: bounds)
                let whole = try self.read(bytes, bounds: bounds)
                #expect(values == whole)
                read += values.count
            } catch { refused += 1 }
        }
        #expect(read > 10_000)
        #expect(refused > 1000)
    }

    @Test func commandsAreArraysOfStrings() throws {
        var output: [UInt8] = []
        let command: [RedisArgument] = ["SET", .bytes([0, 255]), .integer(-7), "ä"]
        command.encode(into: &output)
        #expect(output.count <= command.commandSize)
        #expect(
            try read(output) == [
                .array([
                    .bytes(Array("SET".utf8)), .bytes([0, 255]), .bytes(Array("-7".utf8)), .bytes(Array("ä".utf8)),
                ])
            ])
    }
}
