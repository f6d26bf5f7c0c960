import Foundation
import TestSupport
import Testing
import Wire

/// Random and damaged input: a frame is read or refused, and what was read is what stood there.
///
/// `ROOST_FUZZ_RUNS` sets the number of inputs. A debug build does a tenth, because it is about ten times slower.
@Suite struct ClientFrameFuzzTests {
    static let runs: Int = {
        if let text = ProcessInfo.processInfo.environment["ROOST_FUZZ_RUNS"], let count = Int(text) { return count }
        #if DEBUG
            return 100_000
        #else
            return 1_000_000
        #endif
    }()

    @Test(arguments: 0..<4) func readsOrRefuses(_ part: Int) throws {
        var mutator = Mutator(random: SeededGenerator(seed: 0xF0_0D + UInt64(part)))
        var accepted = 0
        for _ in 0..<(Self.runs / 4) {
            let isBinary = mutator.random.below(4) == 0
            let input: [UInt8] =
                mutator.random.below(16) == 0
                ? mutator.noise()
                : mutator.mutate(mutator.random.pick(isBinary ? Corpus.binary : Corpus.text), with: Corpus.all)
            for version in [ProtocolVersion.v1, .v2] where try check(input, isBinary, version) { accepted += 1 }
        }
        // Neither a fuzzer that never gets past the first check nor a reader that takes everything is worth running.
        #expect(accepted > Self.runs / 4 / 10)
        #expect(accepted < Self.runs / 4)
    }

    /// Whether the input was accepted.
    private func check(_ input: [UInt8], _ isBinary: Bool, _ version: ProtocolVersion) throws -> Bool {
        let frame: ClientFrame
        do {
            frame =
                isBinary
                ? try ClientFrame(binary: input[...], version: version)
                : try ClientFrame(text: input[...], version: version)
        } catch {
            if case .json(let offset) = error, !(0...input.count).contains(offset) {
                Issue.record("\(offset): \(input)")
            }
            return false
        }
        let isRight =
            switch frame.body {
            case .json(let payload): repeats(frame, payload)
            case .userBroadcast(let user): repeats(frame, user, input)
            }
        if !isRight { Issue.record("\(version) \(isBinary): \(input)") }
        return true
    }

    /// Written out again, the frame reads the same: every part is a well-formed value of its own.
    private func repeats(_ frame: ClientFrame, _ payload: JSON) -> Bool {
        var out = [UInt8(ascii: "[")] + frame.joinRef.bytes + [0x2C] + frame.ref.bytes + [0x2C]
        JSONString.encode(frame.topic, into: &out)
        out.append(0x2C)
        JSONString.encode(frame.event, into: &out)
        out += [0x2C] + payload.bytes + [0x5D]
        do {
            let again = try ClientFrame(text: out[...], version: .v2)
            guard case .json(let other) = again.body else { return false }
            return again.joinRef.bytes == frame.joinRef.bytes && again.ref.bytes == frame.ref.bytes
                && again.topic.utf8.elementsEqual(frame.topic.utf8) && again.event.utf8.elementsEqual(frame.event.utf8)
                && other.bytes == payload.bytes && payload.elements.count >= 0
        } catch {
            return false
        }
    }

    /// The fields lie where the length bytes say.
    private func repeats(_ frame: ClientFrame, _ user: UserBroadcast, _ input: [UInt8]) -> Bool {
        let lengths = input[1..<6].map(Int.init)
        let (topic, event) = (7 + lengths[0] + lengths[1], 7 + lengths[0] + lengths[1] + lengths[2])
        let payload = event + lengths[3] + lengths[4]
        return input[0] == 3 && Array(frame.topic.utf8) == Array(input[topic..<event])
            && Array(user.event.utf8) == Array(input[event..<(event + lengths[3])]) && user.payload == input[payload...]
            && (frame.ref.string ?? "").utf8.elementsEqual(input[(7 + lengths[0])..<topic])
    }
}
