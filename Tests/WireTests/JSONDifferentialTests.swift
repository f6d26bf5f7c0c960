import Documents
import Foundation
import TestSupport
import Testing
import Wire

/// The scanner against two others: all take the same documents and see the same values, but for what the tests name.
@Suite struct JSONDifferentialTests {
    private static let documents: [[UInt8]] =
        Corpus.text
        + [
            #"{"a":[1,-2,3.25,1e3,-1E-2,0,-0,0.5,123456789012],"b":{"c":"\"\\\/\b\f\n\r\t\u0041\u20ac\ud83d\ude00"},"":null}"#,
            #"[[],{},[[]],[{}],{"a":[]},"é😀",true,false,null,"",0]"#, " [ 1 , { \"k\" : \"v\" } ]\r\n\t", "\"text\"",
            "-12.5e+3",
        ].map { Array($0.utf8) }

    static let runs: Int = {
        #if DEBUG
            return 20_000
        #else
            return 120_000
        #endif
    }()

    @Test func agreesWithFoundation() throws {
        var mutator = Mutator(random: SeededGenerator(seed: 8259))
        var (accepted, compared) = (0, 0)
        while compared < Self.runs {
            let document = mutator.mutate(mutator.random.pick(Self.documents), with: Self.documents)
            if Self.hasLoneSurrogate(document) { continue }
            compared += 1
            let theirs = try? JSONSerialization.jsonObject(with: Data(document), options: .fragmentsAllowed)
            let ours: JSON
            do { ours = try JSON(parsing: document) } catch {
                if theirs != nil, !Self.endsInAComma(document, at: error.offset) {
                    Issue.record("refused: \(String(decoding: document, as: UTF8.self))")
                }
                continue
            }
            accepted += 1
            guard let theirs else {
                if !Self.hasHugeNumber(ours) { Issue.record("accepted: \(ours)") }
                continue
            }
            if !Self.isSame(ours, theirs) { Issue.record("\(ours)\n\(theirs)") }
        }
        #expect(accepted > Self.runs / 20)
        #expect(accepted < Self.runs / 2)
    }

    /// jansson refuses some of what RFC 8259 leaves open and the scanner takes, and nothing else:
    ///   - half of a surrogate pair alone (section 8.2), which the scanner reads as U+FFFD, because browsers send it;
    ///   - integers beyond 64 bits and numbers beyond a `Double` (section 6), which the scanner keeps as they are written;
    ///   - U+0000 in a key, which no C string has.
    ///
    /// That jansson takes a zero byte for the end of a text is for its wrapper to catch. Deeper than 128 both refuse a document,
    /// and of a repeated key both take the last value.
    @Test func agreesWithJansson() {
        var mutator = Mutator(random: SeededGenerator(seed: 2_14))
        var accepted = 0
        let limits = JSONDocument.Limits(bytes: 1_000_000, depth: JSONScanner.depthLimit)
        for _ in 0..<Self.runs {
            let document = mutator.mutate(mutator.random.pick(Self.documents), with: Self.documents)
            let theirs = Result { () throws(JSONDocument.Problem) in try JSONDocument(parsing: document, limits: limits)
            }
            let ours: JSON
            do { ours = try JSON(parsing: document) } catch {
                if case .success = theirs { Issue.record("refused: \(String(decoding: document, as: UTF8.self))") }
                continue
            }
            accepted += 1
            switch theirs {
            case .success(let theirs): if !Self.isSame(ours, theirs) { Issue.record("\(ours)\n\(theirs)") }
            case .failure(let problem):
                if !Self.hasLoneSurrogate(document), !Self.hasNumberBeyondJansson(ours), !Self.hasZeroInAKey(ours) {
                    Issue.record("accepted: \(ours); \(problem)")
                }
            }
        }
        #expect(accepted > Self.runs / 20)
        #expect(accepted < Self.runs / 2)
    }

    @Test(arguments: [1, 127, 128, 129, 200]) func bothHaveTheSameDepth(depth: Int) {
        let document = Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        let limits = JSONDocument.Limits(bytes: 1000, depth: JSONScanner.depthLimit)
        #expect(((try? JSON(parsing: document)) != nil) == (depth <= 128))
        #expect(((try? JSONDocument(parsing: document, limits: limits)) != nil) == (depth <= 128))
    }

    private static func hasNumberBeyondJansson(_ json: JSON) -> Bool {
        let isWhole =
            json.kind == .number && !json.bytes.contains { ![0x2D].contains($0) && !(0x30...0x39).contains($0) }
        var found =
            isWhole ? Int64(String(decoding: json.bytes, as: UTF8.self)) == nil : json.double?.isFinite == false
        found = found || json.elements.contains(where: hasNumberBeyondJansson)
        json.forEachMember { found = found || hasNumberBeyondJansson($0.value) }
        return found
    }

    private static func hasZeroInAKey(_ json: JSON) -> Bool {
        var found = json.elements.contains(where: hasZeroInAKey)
        json.forEachMember { found = found || $0.key.utf8.contains(0) || hasZeroInAKey($0.value) }
        return found
    }

    private static func isSame(_ ours: JSON, _ theirs: JSONDocument) -> Bool {
        switch ours.kind {
        case .null: return theirs.isNull
        case .bool: return theirs.bool == ours.bool
        case .string: return theirs.string.map { Array($0.utf8) } == ours.string.map { Array($0.utf8) }
        case .number: return theirs.kind == .integer ? theirs.int == ours.int : theirs.double == ours.double
        case .array:
            let (mine, others) = (ours.elements, theirs.elements)
            return mine.count == others.count && zip(mine, others).allSatisfy { isSame($0, $1) }
        case .object:
            var mine: [[UInt8]: JSON] = [:]
            ours.forEachMember { mine[Array($0.key.utf8)] = $0.value }
            let others = theirs.members
            return mine.count == others.count
                && others.allSatisfy { key, value in mine[Array(key.utf8)].map { isSame($0, value) } ?? false }
        }
    }

    /// `[1,]`: Foundation lets it pass.
    private static func endsInAComma(_ document: [UInt8], at offset: Int) -> Bool {
        guard offset < document.count, [0x5D, 0x7D].contains(document[offset]) else { return false }
        return document[..<offset].last { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == 0x2C
    }

    /// `1e999`: Foundation refuses what no double can hold, RFC 8259 (section 6) does not.
    private static func hasHugeNumber(_ json: JSON) -> Bool {
        var found = json.double?.isFinite == false || json.elements.contains(where: hasHugeNumber)
        json.forEachMember { found = found || hasHugeNumber($0.value) }
        return found
    }

    /// Half of a surrogate pair alone: Foundation refuses it, RFC 8259 (section 8.2) leaves it open, browsers send it.
    private static func hasLoneSurrogate(_ document: [UInt8]) -> Bool {
        func unit(_ at: Int) -> UInt16? {
            guard at + 6 <= document.count, document[at] == 0x5C, document[at + 1] == UInt8(ascii: "u") else {
                return nil
            }
            return UInt16(String(decoding: document[(at + 2)..<(at + 6)], as: UTF8.self), radix: 16)
        }
        var at = 0
        while at < document.count {
            guard document[at] == 0x5C else {
                at += 1
                continue
            }
            switch unit(at) {
            case .some(0xD800...0xDBFF):
                guard let low = unit(at + 6), (0xDC00...0xDFFF).contains(low) else { return true }
                at += 12
            case .some(0xDC00...0xDFFF): return true
            default: at += 2
            }
        }
        return false
    }

    private static func isSame(_ ours: JSON, _ theirs: Any) -> Bool {
        switch ours.kind {
        case .null: return theirs is NSNull
        case .bool: return (theirs as? Bool) == ours.bool
        case .string: return (theirs as? String).map { Array($0.utf8) } == ours.string.map { Array($0.utf8) }
        case .number:
            guard let number = theirs as? NSNumber else { return false }
            if let whole = ours.int { return number.int64Value == whole }
            // Foundation rounds the last digit of long fractions.
            guard let value = ours.double else { return false }
            return abs(number.doubleValue - value) <= abs(value) * 1e-15
        case .array:
            guard let list = theirs as? [Any] else { return false }
            let elements = ours.elements
            return elements.count == list.count && zip(elements, list).allSatisfy { isSame($0, $1) }
        case .object:
            guard let map = theirs as? [String: Any] else { return false }
            var keys: Set<String> = []
            ours.forEachMember { keys.insert($0.key) }
            return keys.count == map.count
                && keys.allSatisfy { key in
                    guard let one = ours[key], let other = map[key] else { return false }
                    return isSame(one, other)
                }
        }
    }
}
