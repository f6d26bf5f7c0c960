import Glibc

/// Numbers with so many decimals, without Foundation.
enum FixedText {
    static func of(_ value: Double, _ decimals: Int) -> String {
        var text = [CChar](repeating: 0, count: 64)
        let count = withVaList([Int32(decimals), value]) { vsnprintf(&text, text.count, "%.*f", $0) }
        return String(decoding: text.prefix(Int(count)).map(UInt8.init), as: UTF8.self)
    }
}
